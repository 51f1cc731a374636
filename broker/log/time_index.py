"""Timestamp → offset: with every entry of the offset index, the largest timestamp so far."""

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
    """An entry (t, o) promises: no record up to offset o is younger than t.

    Invariant: timestamps rise strictly, offsets never fall. The last entry of a closed segment has
    the largest timestamp of the whole segment, which is what retention goes by.
    """

    ENTRY: ClassVar[Struct] = TIME_ENTRY
    OFFSET_AT: ClassVar[int] = 8
    __slots__ = ()

    @property
    def is_full(self) -> bool:
        """As for the offset index, but one slot is kept for the entry written when closing."""
        return self.entries >= self._max_bytes // self.ENTRY.size - 1

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry not younger than `timestamp`; (-1, base offset) where there is none."""
        slot = self._last_slot_at_most(timestamp, 0, 8)
        return self.entry(slot) if slot >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def entry(self, slot: int) -> TimestampOffset:
        """The entry at `slot`, counted from 0."""
        timestamp, relative = self._entry(slot)
        return TimestampOffset(timestamp, self.base_offset + relative)

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; (-1, base offset) where there is none."""
        entries = self.entries
        if entries:
            return self.entry(entries - 1)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if `timestamp` is larger than all others; records without one add none."""
        last = self.last_entry
        if self._entries and offset < last.offset:
            raise ValueError(f"{self.path}: {offset} is below {last.offset}")
        if timestamp > last.timestamp:
            self._append_entry(timestamp, self.relative(offset))
