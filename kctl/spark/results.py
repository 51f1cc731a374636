"""What a task has done, and the sum of it over tasks: the substance of the manifest."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from broker.model import TopicPartition
from kctl.spark.plan import OffsetRange

UNKNOWN = -1


@dataclass(frozen=True)
class ExportedFile:
    """One file, by its path below the export's directory."""

    path: str
    records: int
    """UNKNOWN where a file was only looked at, and its format does not say."""
    size_bytes: int
    crc32c: str


@dataclass(frozen=True)
class PartitionCount:
    """What was exported of one partition; offsets are those of records, None without any."""

    topic: str
    partition: int
    records: int = 0
    undecodable: int = 0
    size_bytes: int = 0
    """Bytes of the records as they were read, decompressed."""
    first_offset: int | None = None
    last_offset: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """Whose count this is."""
        return TopicPartition(self.topic, self.partition)

    def plus(self, other: "PartitionCount") -> "PartitionCount":
        """The sum; `other` may lie before or behind."""
        firsts = [o for o in (self.first_offset, other.first_offset) if o is not None]
        lasts = [o for o in (self.last_offset, other.last_offset) if o is not None]
        return PartitionCount(
            self.topic,
            self.partition,
            self.records + other.records,
            self.undecodable + other.undecodable,
            self.size_bytes + other.size_bytes,
            min(firsts, default=None),
            max(lasts, default=None),
        )


@dataclass(frozen=True)
class TaskResult:
    """One finished task."""

    index: int
    counts: tuple[PartitionCount, ...]
    files: tuple[ExportedFile, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "TaskResult":
        """What `to_json` gave."""
        return cls(
            document["index"],
            tuple(PartitionCount(**fields) for fields in document["counts"]),
            tuple(ExportedFile(**fields) for fields in document["files"]),
        )


def sum_counts(
    ranges: Iterable[OffsetRange], results: Iterable[TaskResult]
) -> dict[TopicPartition, PartitionCount]:
    """The counts of every partition of the plan, those without records included."""
    counts = {each.topic_partition: PartitionCount(each.topic, each.partition) for each in ranges}
    for result in results:
        for count in result.counts:
            counts[count.topic_partition] = counts[count.topic_partition].plus(count)
    return counts
