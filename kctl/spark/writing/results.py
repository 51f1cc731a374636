"""Results of tasks, and their sums for the manifest."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from broker.model import TopicPartition
from kctl.spark.planning.plan import OffsetRange

UNKNOWN = -1


@dataclass(frozen=True)
class ExportedFile:
    """A file of an export; the path is relative to the export."""

    path: str
    records: int
    """UNKNOWN if the format of a file has no count."""
    size_bytes: int
    crc32c: str


@dataclass(frozen=True)
class PartitionCount:
    """Counts of one partition; the offsets are those of exported records, None without any."""

    topic: str
    partition: int
    records: int = 0
    undecodable: int = 0
    size_bytes: int = 0
    """Size of the decompressed records."""
    first_offset: int | None = None
    last_offset: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    def plus(self, other: "PartitionCount") -> "PartitionCount":
        """The sum of two counts of the same partition."""
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
        """As a JSON document."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "TaskResult":
        """The inverse of `to_json`."""
        return cls(
            document["index"],
            tuple(PartitionCount(**fields) for fields in document["counts"]),
            tuple(ExportedFile(**fields) for fields in document["files"]),
        )


def sum_counts(
    ranges: Iterable[OffsetRange], results: Iterable[TaskResult]
) -> dict[TopicPartition, PartitionCount]:
    """The counts of each partition of the plan, including those without records."""
    counts = {each.topic_partition: PartitionCount(each.topic, each.partition) for each in ranges}
    for result in results:
        for count in result.counts:
            counts[count.topic_partition] = counts[count.topic_partition].plus(count)
    return counts
