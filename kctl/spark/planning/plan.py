"""The plan of an export: offset ranges, pinned once, split into pieces and packed into tasks.

A piece is a contiguous part of one partition. In a log directory it is a byte range of one segment
file, so that tasks need no lookups; on a cluster it is a range of offsets. In both cases only
records with first_offset <= offset < end_offset belong to it. *Invariant*: every offset of a range
belongs to exactly one piece, which makes the export exact.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from broker.model import TopicPartition
from kctl.spark.planning.origin import Origin

DEFAULT_TASK_BYTES = 96 * 1024 * 1024


@dataclass(frozen=True)
class OffsetRange:
    """Offsets of one partition to export; the end is exclusive."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def is_empty(self) -> bool:
        """Whether the range contains no offsets."""
        return self.first_offset >= self.end_offset


@dataclass(frozen=True)
class Gap:
    """Records that no export contains, because they were gone before they were exported."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    reason: str

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class AbortedSpan:
    """An aborted transaction that overlaps a piece."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class Piece:
    """A part of one partition; `path` and `position` only if it is part of a file."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    size_bytes: int
    path: str = ""
    position: int = 0
    aborted: tuple[AbortedSpan, ...] = ()


@dataclass(frozen=True)
class ExportTask:
    """The pieces that one Spark task reads, in the order in which it writes them."""

    index: int
    pieces: tuple[Piece, ...]

    @property
    def size_bytes(self) -> int:
        """Approximate number of bytes to read."""
        return sum(piece.size_bytes for piece in self.pieces)


@dataclass(frozen=True)
class Plan:
    """The plan of an export; also stored for `--resume`."""

    ranges: tuple[OffsetRange, ...]
    tasks: tuple[ExportTask, ...]
    options: dict[str, Any] = field(default_factory=dict)
    """The settings of the tasks (`TaskSettings.to_json`)."""
    run_id: str = ""
    """Identifies the run in its manifest, so that it is published only once."""
    is_overwrite: bool = False
    """Whether to replace the existing exports."""
    origin: Origin = field(default_factory=Origin)
    """The logs of the ranges."""
    mode: str = ""
    """How the export relates to the others in its directory: new, append, incremental …"""
    gaps: tuple[Gap, ...] = ()
    """Gaps before the ranges (`--on-gap skip`)."""
    state: dict[str, Any] = field(default_factory=dict)
    """Topic configs and group offsets, for `kctl import` (reading/topic_state.py)."""

    @property
    def size_bytes(self) -> int:
        """Approximate number of bytes to read."""
        return sum(task.size_bytes for task in self.tasks)

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON document."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Plan":
        """The inverse of `to_json`."""
        return cls(
            tuple(OffsetRange(**fields) for fields in document["ranges"]),
            tuple(
                ExportTask(task["index"], tuple(_piece(fields) for fields in task["pieces"]))
                for task in document["tasks"]
            ),
            document["options"],
            document["run_id"],
            document["is_overwrite"],
            Origin(**document.get("origin", {})),
            document.get("mode", ""),
            tuple(Gap(**fields) for fields in document.get("gaps", ())),
            document.get("state", {}),
        )


def _piece(fields: dict[str, Any]) -> Piece:
    aborted = tuple(AbortedSpan(**span) for span in fields["aborted"])
    return Piece(**{**fields, "aborted": aborted})


def pack(pieces: Iterable[Piece], task_bytes: int) -> tuple[ExportTask, ...]:
    """Pack pieces into tasks of about `task_bytes`, in order.

    Small pieces share a task, because the overhead of a task exceeds the cost of a small partition.
    Pieces are not split here; sources have split them.
    """
    tasks: list[ExportTask] = []
    waiting: list[Piece] = []
    waiting_bytes = 0
    for piece in pieces:
        if waiting and waiting_bytes + piece.size_bytes > task_bytes:
            tasks.append(ExportTask(len(tasks), tuple(waiting)))
            waiting, waiting_bytes = [], 0
        waiting.append(piece)
        waiting_bytes += piece.size_bytes
    if waiting:
        tasks.append(ExportTask(len(tasks), tuple(waiting)))
    return tuple(tasks)


def split_evenly(offsets: OffsetRange, size_bytes: int, task_bytes: int) -> list[Piece]:
    """Split a range whose total size is known into equal ranges of offsets."""
    count = offsets.end_offset - offsets.first_offset
    num_pieces = max(1, min(count, -(-size_bytes // task_bytes)))
    bounds = [offsets.first_offset + count * index // num_pieces for index in range(num_pieces + 1)]
    return [
        Piece(offsets.topic, offsets.partition, first, end, size_bytes // num_pieces)
        for first, end in itertools.pairwise(bounds)
    ]


def last_records(offsets: Sequence[OffsetRange], count: int) -> list[OffsetRange]:
    """The last `count` offsets of each range."""
    return [
        OffsetRange(
            each.topic,
            each.partition,
            max(each.first_offset, each.end_offset - count),
            each.end_offset,
        )
        for each in offsets
    ]
