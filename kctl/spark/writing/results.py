"""Results of tasks, and their sums for the manifest."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from broker.model import TopicPartition
from kctl.spark.planning.plan import OffsetRange
from kctl.spark.writing.checksums import Streams, column_checksums, joined

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
    streams: Streams = field(default_factory=dict)
    """Checksums of the rows, in offset order (checksums.py)."""
    gaps: tuple[tuple[int, int], ...] = ()
    """(first offset, end offset) of records that were deleted before they were read."""

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    def as_row(self) -> dict[str, Any]:
        """The counts for tables and manifests."""
        row = asdict(self)
        del row["streams"], row["gaps"]
        return row

    @property
    def checksums(self) -> dict[str, str]:
        """The checksum of each column."""
        return column_checksums(self.streams)

    def plus(self, other: "PartitionCount") -> "PartitionCount":
        """The sum of two counts of the same partition; those of `other` have larger offsets."""
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
            joined(self.streams, other.streams) if other.streams else self.streams,
            self.gaps + other.gaps,
        )

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "PartitionCount":
        """The inverse of `asdict` and JSON."""
        streams = {name: tuple(each) for name, each in fields.get("streams", {}).items()}
        gaps = tuple((first, end) for first, end in fields.get("gaps", ()))
        return cls(**{**fields, "streams": streams, "gaps": gaps})


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
            tuple(PartitionCount.from_json(fields) for fields in document["counts"]),
            tuple(ExportedFile(**fields) for fields in document["files"]),
        )


def sum_counts(
    ranges: Iterable[OffsetRange], results: Iterable[TaskResult]
) -> dict[TopicPartition, PartitionCount]:
    """The counts of each partition of the plan, including those without records."""
    counts = {each.topic_partition: PartitionCount(each.topic, each.partition) for each in ranges}
    for result in sorted(results, key=lambda each: each.index):  # in offset order
        for count in result.counts:
            counts[count.topic_partition] = counts[count.topic_partition].plus(count)
    return counts
