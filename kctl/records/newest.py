"""The newest records of several partitions together."""

from collections.abc import Iterable, Mapping

from broker.model import TopicPartition
from kctl.model.records import TopicRecord

Offsets = dict[TopicPartition, int]


class Newest:
    """Finds the newest records by reading every partition backwards, piece by piece.

    Invariant: `_found` holds all wanted records of each partition between `_from` and its end, as
    far as they can belong to the result.
    """

    def __init__(
        self,
        count: int,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        self._count = count
        self._starts = starts
        self._from = dict(ends)
        """The offset from which on each partition has been read."""
        self._span = count
        self._found: dict[TopicPartition, list[TopicRecord]] = {place: [] for place in ends}
        self._piece: list[TopicRecord] = []

    def next_piece(self) -> tuple[Offsets, Offsets] | None:
        """The first offsets and the ends to read next; None when the records are complete."""
        self._settle()
        places = [
            place
            for place, records in self._found.items()
            if len(records) < self._count and self._from[place] > self._starts[place]
        ]
        if not places:
            return None
        ends = {place: self._from[place] for place in places}
        begins = {place: max(self._starts[place], ends[place] - self._span) for place in places}
        self._from |= begins
        self._span *= 2
        return begins, ends

    def add(self, records: Iterable[TopicRecord]) -> None:
        """Add wanted records of the current piece."""
        self._piece += records

    def records(self) -> list[TopicRecord]:
        """The newest records, newest first; by time, and within a partition by offset."""
        self._settle()
        everything = [record for own in self._found.values() for record in own]
        newest = sorted(everything, key=_age, reverse=True)
        return newest[: self._count]

    def _settle(self) -> None:
        for record in self._piece:
            self._found[TopicPartition(record.topic or "", record.partition or 0)].append(record)
        self._piece = []
        for place, own in self._found.items():
            self._found[place] = sorted(own, key=lambda one: one.offset or 0)[-self._count :]


def _age(record: TopicRecord) -> tuple[int, str, int, int]:
    return (
        record.timestamp_ms or -1,
        record.topic or "",
        record.partition or 0,
        record.offset or 0,
    )
