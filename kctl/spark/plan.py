"""What an export reads: offset ranges, pinned once, cut into pieces and packed into tasks. Pure.

A piece is the part of a partition that one task reads in one go. From log directories it is a span
of one segment's file, so that nothing is looked up again; through the wire a span of offsets. In
both cases only records with first_offset <= offset < end_offset belong to it, and every offset of
the range belongs to exactly one piece: that is what makes the export exact.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from broker.model import TopicPartition

DEFAULT_TASK_BYTES = 96 * 1024 * 1024


@dataclass(frozen=True)
class OffsetRange:
    """What is exported of one partition: offsets from `first_offset` up to, not with, the end."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Whose offsets these are."""
        return TopicPartition(self.topic, self.partition)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.first_offset >= self.end_offset


@dataclass(frozen=True)
class AbortedSpan:
    """An aborted transaction that reaches into a piece."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class Piece:
    """One span of one partition; `path` and positions only where it lies in a file."""

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
    """What one Spark task reads, in the order in which it writes it."""

    index: int
    pieces: tuple[Piece, ...]

    @property
    def size_bytes(self) -> int:
        """About how much it reads."""
        return sum(piece.size_bytes for piece in self.pieces)


@dataclass(frozen=True)
class Plan:
    """A whole export, before anything of it is done; also what `--resume` finds again."""

    ranges: tuple[OffsetRange, ...]
    tasks: tuple[ExportTask, ...]
    options: dict[str, Any] = field(default_factory=dict)
    """How to read and write, as `settings.TaskSettings` takes it."""
    run_id: str = ""
    """Names the run in its manifest, so that one that was published is not published again."""
    is_overwrite: bool = False
    """Whether what the target holds is to be replaced."""

    @property
    def size_bytes(self) -> int:
        """About how much is read."""
        return sum(task.size_bytes for task in self.tasks)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Plan":
        """The plan that `to_json` gave."""
        return cls(
            tuple(OffsetRange(**fields) for fields in document["ranges"]),
            tuple(
                ExportTask(task["index"], tuple(_piece(fields) for fields in task["pieces"]))
                for task in document["tasks"]
            ),
            document["options"],
            document["run_id"],
            document["is_overwrite"],
        )


def _piece(fields: dict[str, Any]) -> Piece:
    aborted = tuple(AbortedSpan(**span) for span in fields["aborted"])
    return Piece(**{**fields, "aborted": aborted})


def pack(pieces: Iterable[Piece], task_bytes: int) -> tuple[ExportTask, ...]:
    """Tasks of about `task_bytes`, pieces in their order.

    Small pieces share a task, because a task costs more than a small partition; none is split
    here, sources have done that.
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
    """Pieces of a range whose bytes are known only in sum: equal spans of offsets."""
    count = offsets.end_offset - offsets.first_offset
    num_pieces = max(1, min(count, -(-size_bytes // task_bytes)))
    bounds = [offsets.first_offset + count * index // num_pieces for index in range(num_pieces + 1)]
    return [
        Piece(offsets.topic, offsets.partition, first, end, size_bytes // num_pieces)
        for first, end in itertools.pairwise(bounds)
    ]


def last_records(offsets: Sequence[OffsetRange], count: int) -> list[OffsetRange]:
    """The ends of the ranges: the last `count` offsets of every partition."""
    return [
        OffsetRange(
            each.topic,
            each.partition,
            max(each.first_offset, each.end_offset - count),
            each.end_offset,
        )
        for each in offsets
    ]
