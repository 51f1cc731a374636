"""What the offset index and the time index share: a sorted array of fixed-size entries in a file.

The file of an active segment is as long as the index may grow (`segment.index.bytes`, a hole in the
file) and is cut to its entries when the segment rolls or closes, as Kafka does. So the length of a
closed index is the number of its entries, and an index that was not closed cannot be trusted.

Entries are read and written through a shared map of the file, so other processes see an entry as
soon as it is added, as with Kafka. A write into a hole of a mapped file kills the process (SIGBUS)
when the disk is full; therefore the blocks are allocated first, a page at a time, which raises
ENOSPC like any other write.

Nothing is opened before the first use: thousands of idle partitions cost no descriptors. The map
keeps a descriptor of its own, so the file is closed once it is mapped.
"""

import errno
import fcntl
import mmap
import os
from pathlib import Path
from struct import Struct
from typing import ClassVar

from broker.log.descriptors import DESCRIPTORS, is_out_of_descriptors
from broker.log.files import FileSystem, OpenFile
from broker.log.layout import MAX_RELATIVE_OFFSET

_ALLOCATED_TOGETHER = 4096
"""Bytes that are allocated at once: a page."""
_SLOTS_NEARBY = 5
"""Slots that a lookup tries before it bisects: a consumer seldom skips more."""


class Index:
    """Base of both indexes: opening, growing, cutting and bisecting.

    Field `path`: where the file is, or would be.
    Field `base_offset`: that of the segment. Invariant: entries hold offsets relative to it.
    Field `_entries`: how many there are; -1 until the file has been opened.
    Field `_length`: the length of the file, valid once it has been opened.
    Field `_allocated`: Invariant: no byte below it is in a hole, so it may be written through the
      map. 0 when that is not known.
    Field `_last`: the last entry; None until it has been read.
    Field `_recent_slot`: the slot of the last lookup by offset. A hint only: it may be wrong.
    """

    ENTRY: ClassVar[Struct]
    OFFSET_AT: ClassVar[int]  # where in an entry its relative offset lies
    FIELD_OF_OFFSET: ClassVar[int]  # which of its fields that is
    KEPT_FREE: ClassVar[int] = 0  # slots that appends do not use

    __slots__ = (
        "_allocated",
        "_capacity",
        "_entries",
        "_file",
        "_fs",
        "_last",
        "_length",
        "_map",
        "_max_bytes",
        "_recent_slot",
        "base_offset",
        "path",
    )

    def __init__(self, path: Path, base_offset: int, max_bytes: int, fs: FileSystem) -> None:
        self.path = path
        self.base_offset = base_offset
        self._max_bytes = max_bytes
        self._capacity = max_bytes // self.ENTRY.size - self.KEPT_FREE
        self._fs = fs
        self._file: OpenFile | None = None
        self._map: mmap.mmap | None = None
        self._entries = -1
        self._length = 0
        self._allocated = 0
        self._last: tuple[int, int] | None = None
        self._recent_slot = 0

    # --- opening and closing ---------------------------------------------------------------

    def _opened(self) -> OpenFile:
        """The file, created at its full length if it is missing."""
        if self._file is not None:
            return self._file
        try:
            self._file = self._fs.open_file(self.path)
        except FileNotFoundError:
            return self._created()
        self._length = self._file.size()
        if self._entries < 0:
            self._entries = self._length // self.ENTRY.size
        return self._file

    def _created(self) -> OpenFile:
        """A new file at its full length, over one of its name."""
        self._file = self._fs.create_file(self.path)
        self._entries = 0
        self._resize(self._full_length)
        return self._file

    def create(self) -> None:
        """Create the file of a new segment; the first entry, often much later, opens it again."""
        self._created()
        self.release()

    @property
    def _full_length(self) -> int:
        return self._max_bytes // self.ENTRY.size * self.ENTRY.size

    def _resize(self, length: int) -> None:
        file = self._opened()
        self._map = None  # a map beyond the end of its file must never be used
        self._allocated = 0
        self._fs.truncate(file, length)
        self._length = length

    def _mapped(self) -> mmap.mmap:
        """A map of the whole file, which must not be empty."""
        if self._map is None:
            try:
                self._map = self._new_map()
            except OSError as error:
                # A map needs a descriptor, and the kernel limits the number of maps.
                if not is_out_of_descriptors(error) and error.errno != errno.ENOMEM:
                    raise
                DESCRIPTORS.reclaim_all()
                self._map = self._new_map()
            self._file = None
        return self._map

    def _new_map(self) -> mmap.mmap:
        fd = self._opened().fd
        # dump-log opens the files of others read-only, and such a file cannot be mapped writable.
        is_read_only = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        protection = mmap.PROT_READ if is_read_only else mmap.PROT_READ | mmap.PROT_WRITE
        entries = mmap.mmap(fd, self._length, mmap.MAP_SHARED, protection)
        # Otherwise Linux 6.16 and later bring 2 MB of the hole into memory (a large folio) when the
        # first entry is written, which takes 2 ms instead of 10 µs.
        entries.madvise(mmap.MADV_RANDOM)
        return entries

    @property
    def entries(self) -> int:
        """How many entries there are."""
        if self._entries < 0:
            self._opened()
        return self._entries

    @property
    def size_in_bytes(self) -> int:
        """Bytes used by entries; the file is longer while the segment is active."""
        return self.entries * self.ENTRY.size

    @property
    def has_odd_length(self) -> bool:
        """Whether the file ends inside an entry, which a closed index never does."""
        self._opened()
        return self._length % self.ENTRY.size != 0

    @property
    def entries_left(self) -> int:
        """How many entries fit before the segment must roll; negative if the limit was lowered."""
        return self._capacity - self.entries

    def trim(self) -> None:
        """Cut the file to its entries."""
        size = self.size_in_bytes
        if self._length != size:
            self._resize(size)

    def reset(self) -> None:
        """Remove all entries; the file gets its full length again."""
        self._opened()
        self._entries = 0
        self._last = None
        self._resize(self._full_length)

    def open_file(self) -> OpenFile:
        """The file, for a caller that flushes it; a flush covers writes through the map."""
        return self._opened()

    def release(self) -> None:
        """Release the descriptors; the next use opens the file again.

        The number of entries is kept, because the length of an active file does not tell it.
        """
        self._map = None
        self._file = None
        self._allocated = 0

    def close(self) -> None:
        """Trim the file and release descriptors; a file that was never opened is not touched."""
        if self._entries >= 0:
            self.trim()
        self.release()

    # --- entries -----------------------------------------------------------------------------

    def relative(self, offset: int) -> int:
        """The offset as an entry holds it; ValueError if the segment cannot hold it."""
        relative = offset - self.base_offset
        if not 0 <= relative <= MAX_RELATIVE_OFFSET:
            raise ValueError(f"{self.path}: offset {offset} does not fit base {self.base_offset}")
        return relative

    def _last_as_written(self) -> tuple[int, int] | None:
        """The fields of the last entry; None for an empty index."""
        if self._last is None and self.entries:
            self._last = self._entry(self._entries - 1)
        return self._last

    def _append_entry(self, entry: tuple[int, int]) -> None:
        """Add an entry. The caller has compared it with the last one, so `_entries` is known."""
        size = self.ENTRY.size
        position = self._entries * size
        if position + size > self._allocated:
            self._allocate(position, position + size)
        self.ENTRY.pack_into(self._map or self._mapped(), position, *entry)
        self._entries += 1
        self._last = entry

    def _allocate(self, start: int, end: int) -> None:
        """Make sure that the bytes from `start` to `end`, and some more, are not in a hole."""
        file = self._opened()
        if end > self._length:  # closed cleanly and trimmed, now growing again
            self._resize(max(self._full_length, end))
        pages = -(-end // _ALLOCATED_TOGETHER)
        allocated = min(pages * _ALLOCATED_TOGETHER, self._length)
        self._fs.allocate(file, start, allocated - start)
        self._allocated = allocated

    def _entry(self, slot: int) -> tuple[int, int]:
        if slot == self._entries - 1 and self._last is not None:
            return self._last
        start, size = slot * self.ENTRY.size, self.ENTRY.size
        if self._map is None:  # a single entry is not worth a map
            values: tuple[int, int] = self.ENTRY.unpack(self._opened().read(start, size))
        else:
            values = self.ENTRY.unpack_from(self._map, start)
        return values

    def _last_slot_at_most(self, target: int, at: int, width: int) -> int:
        """The last slot whose field at byte `at` is at most `target`; -1 if no slot qualifies."""
        low, high = 0, self.entries
        if not high:
            return -1
        entries, step = self._mapped(), self.ENTRY.size
        while low < high:
            middle = (low + high) // 2
            start = middle * step + at
            if int.from_bytes(entries[start : start + width], "big", signed=True) <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _last_slot_up_to_offset(self, offset: int) -> int:
        """The last slot whose offset is at most `offset`; -1 if no slot qualifies.

        A consumer reads sequentially, so its next lookup is usually at or soon after the slot of
        its last one. Looking there first saves the bisection, which is most of what a lookup costs.
        """
        target = offset - self.base_offset
        slot = self._slot_near(self._recent_slot, target)
        if slot is None:
            slot = self._last_slot_at_most(target, self.OFFSET_AT, 4)
        self._recent_slot = slot
        return slot

    def _slot_near(self, slot: int, target: int) -> int | None:
        """The last slot whose relative offset is at most `target`, if it is `slot` or soon after.

        A slot of -1 is the one before the first. None if the search must begin at the start.
        """
        entries = self._map
        if entries is None or not -1 <= slot < self._entries:
            return None
        unpack_from, step, at = self.ENTRY.unpack_from, self.ENTRY.size, self.FIELD_OF_OFFSET
        if slot >= 0 and unpack_from(entries, slot * step)[at] > target:
            return None
        for following in range(slot + 1, min(slot + _SLOTS_NEARBY, self._entries)):
            if unpack_from(entries, following * step)[at] > target:
                return following - 1
        return self._entries - 1 if slot + _SLOTS_NEARBY >= self._entries else None

    def truncate_to(self, offset: int) -> None:
        """Remove the entries for `offset` and above."""
        slot = self._last_slot_up_to_offset(offset - 1)
        self._keep(slot + 1)

    def _keep(self, entries: int) -> None:
        self._entries = entries
        self._last = None
