"""Timestamp → offset: for every entry of the offset index, the largest timestamp so far."""

from struct import Struct
from typing import ClassVar, NamedTuple

from broker.log.index import Index
from broker.log.layout import TIME_ENTRY
from broker.records.layout import NO_TIMESTAMP


class TimestampOffset(NamedTuple):
    """`timestamp` is the largest up to `offset`, the last offset of the batch that has it."""

    timestamp: int
    offset: int


class TimeIndex(Index):
    """An entry (t, o) guarantees that no record up to offset o has a timestamp above t.

    Invariant: timestamps increase strictly, offsets never decrease. The last entry of a closed
    segment has the largest timestamp of the segment, which retention uses.
    """

    ENTRY: ClassVar[Struct] = TIME_ENTRY
    OFFSET_AT: ClassVar[int] = 8
    FIELD_OF_OFFSET: ClassVar[int] = 1
    KEPT_FREE: ClassVar[int] = 1  # for the entry written when closing
    __slots__ = ()

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry at or below `timestamp`; (-1, base offset) if all are above."""
        slot = self._last_slot_at_most(timestamp, 0, 8)
        return self.entry(slot) if slot >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def entry(self, slot: int) -> TimestampOffset:
        """The entry at `slot`, counted from 0."""
        timestamp, relative = self._entry(slot)
        return TimestampOffset(timestamp, self.base_offset + relative)

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; (-1, base offset) for an empty index."""
        entries = self.entries
        if entries:
            return self.entry(entries - 1)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if `timestamp` is larger than all others; records without one add none."""
        last = self._last or self._last_as_written()
        if last is not None and offset - self.base_offset < last[1]:
            raise ValueError(f"{self.path}: {offset} is below {self.last_entry.offset}")
        if timestamp > (NO_TIMESTAMP if last is None else last[0]):
            self._append_entry((timestamp, self.relative(offset)))
