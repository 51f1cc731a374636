"""Offset → position in the segment: one entry every `index.interval.bytes`."""

from struct import Struct
from typing import ClassVar, NamedTuple

from broker.log.index import Index
from broker.log.layout import OFFSET_ENTRY


class OffsetPosition(NamedTuple):
    """The batch that ends with `offset` begins at `position` of the segment's file."""

    offset: int
    position: int


class OffsetIndex(Index):
    """Sparse: a lookup gives a position at or before the batch sought, never after it.

    Invariant: offsets and positions both increase strictly from entry to entry, and no entry is at
    position 0, since at least one batch comes before the first entry.
    """

    ENTRY: ClassVar[Struct] = OFFSET_ENTRY
    OFFSET_AT: ClassVar[int] = 0
    FIELD_OF_OFFSET: ClassVar[int] = 0
    __slots__ = ()

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or below `offset`; (base offset, 0) if all are above."""
        slot = self._last_slot_up_to_offset(offset)
        return self.entry(slot) if slot >= 0 else OffsetPosition(self.base_offset, 0)

    def entry(self, slot: int) -> OffsetPosition:
        """The entry at `slot`, counted from 0."""
        relative, position = self._entry(slot)
        return OffsetPosition(self.base_offset + relative, position)

    @property
    def last_entry(self) -> OffsetPosition:
        """The last entry; (base offset, 0) for an empty index."""
        entries = self.entries
        return self.entry(entries - 1) if entries else OffsetPosition(self.base_offset, 0)

    def first_offset_beyond(self, position: int) -> int | None:
        """The offset of the first entry whose batch begins after `position`.

        The upper bound of the offsets that a read ending at `position` can contain; None if all
        entries are below.
        """
        slot = self._last_slot_at_most(position, 4, 4) + 1
        return self.entry(slot).offset if slot < self.entries else None

    def append(self, offset: int, position: int) -> None:
        """Add an entry; ValueError unless `offset` is above all others."""
        relative, last = self.relative(offset), self._last or self._last_as_written()
        if last is not None and relative <= last[0]:
            raise ValueError(f"{self.path}: {offset} is not above {self.last_entry.offset}")
        self._append_entry((relative, position))
