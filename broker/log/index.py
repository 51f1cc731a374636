"""What the offset index and the time index share: a sorted array of fixed-size entries in a file.

The file of an active segment is as long as the index may grow (`segment.index.bytes`, a hole in the
file) and is cut to its entries when the segment rolls or closes, as Kafka does; so the length of a
closed index is the number of its entries, and an index that was not closed cannot be trusted.

Lookups bisect a read-only map of the file. Entries are written with `pwrite` and not through the
map: on a full disk a write into a hole of a mapped file kills the process (SIGBUS), a `pwrite`
raises. Linux shows both the same pages.

Nothing is opened before the first use: thousands of idle partitions cost no descriptors.
"""

import mmap
from pathlib import Path
from struct import Struct
from typing import ClassVar

from broker.log.files import FileSystem, OpenFile
from broker.log.layout import MAX_RELATIVE_OFFSET

_WRITE_TOGETHER = 100
"""So many entries are packed and written at once."""


class Index:
    """Base of both indexes: opening, growing, cutting and bisecting.

    Field `path`: where the file is, or would be.
    Field `base_offset`: that of the segment. Invariant: entries hold offsets relative to it.
    """

    ENTRY: ClassVar[Struct]
    OFFSET_AT: ClassVar[int]  # where in an entry its relative offset lies
    KEPT_FREE: ClassVar[int] = 0  # slots that appends do not use

    __slots__ = (
        "_capacity",
        "_entries",
        "_file",
        "_fs",
        "_last",
        "_length",
        "_map",
        "_max_bytes",
        "_unwritten",
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
        self._entries = -1  # -1: not looked at yet
        self._length = 0
        self._unwritten: list[tuple[int, int]] = []  # the newest entries
        self._last: tuple[int, int] | None = None  # the last entry, once it is known

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
        """Make the file of a new segment; it is opened again for the first entry.

        Most segments of an idle broker wait long for it.
        """
        self._created()
        self.release()

    @property
    def _full_length(self) -> int:
        return self._max_bytes // self.ENTRY.size * self.ENTRY.size

    def _resize(self, length: int) -> None:
        file = self._opened()
        self._map = None  # a map beyond the end of its file must never be read
        self._fs.truncate(file, length)
        self._length = length

    def _mapped(self) -> mmap.mmap:
        """A map of all entries; there is at least one."""
        self._write_out()
        if self._map is None:
            fd = self._opened().fd
            self._map = mmap.mmap(fd, self._length, mmap.MAP_SHARED, mmap.PROT_READ)
        return self._map

    @property
    def entries(self) -> int:
        """How many entries there are."""
        if self._entries < 0:
            self._opened()
        return self._entries

    @property
    def size_in_bytes(self) -> int:
        """Bytes that the entries take; the file may be longer while the segment is active."""
        return self.entries * self.ENTRY.size

    @property
    def has_odd_length(self) -> bool:
        """Whether the file is cut inside an entry, which no closed index is."""
        self._opened()
        return self._length % self.ENTRY.size != 0

    @property
    def entries_left(self) -> int:
        """How many entries fit before the segment must roll; below 0 if its limit was lowered."""
        return self._capacity - self.entries

    def trim(self) -> None:
        """Cut the file to its entries."""
        self._write_out()
        size = self.size_in_bytes
        if self._length != size:
            self._resize(size)

    def reset(self) -> None:
        """Drop all entries and begin again; the file has its full length."""
        self._opened()
        self._entries = 0
        self._unwritten.clear()
        self._last = None
        self._resize(self._full_length)

    def open_file(self) -> OpenFile:
        """The file with all entries in it, for somebody who flushes it."""
        self._write_out()
        return self._opened()

    def release(self) -> None:
        """Give the descriptors back; the next use opens the file again.

        The number of entries is kept, because the length of an active file does not tell it.
        """
        self._map = None
        self._file = None

    def close(self) -> None:
        """Trim and give the descriptors back; does not touch a file that nobody opened."""
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
        """The fields of the last entry; None where there is none."""
        if self._last is None and self.entries:
            self._last = self._entry(self._entries - 1)
        return self._last

    def _append_entry(self, entry: tuple[int, int]) -> None:
        """Add an entry. It reaches the file with others, or when somebody looks.

        A process that is killed before loses it, and nothing with it: what was not flushed is
        read again at the next start, and its entries are made anew. The number of entries is known:
        who adds one has compared it with the last.
        """
        self._unwritten.append(entry)
        self._entries += 1
        self._last = entry
        if len(self._unwritten) >= _WRITE_TOGETHER:
            self._write_out()

    def _write_out(self) -> None:
        if not self._unwritten:
            return
        packed = b"".join([self.ENTRY.pack(*entry) for entry in self._unwritten])
        end = self._entries * self.ENTRY.size
        file = self._opened()
        if end > self._length:  # closed cleanly and trimmed, now growing again
            self._resize(max(self._full_length, end))
        self._fs.write(file, [packed], end - len(packed))
        self._unwritten.clear()

    def _entry(self, slot: int) -> tuple[int, int]:
        if slot == self._entries - 1 and self._last is not None:
            return self._last
        self._write_out()
        start, size = slot * self.ENTRY.size, self.ENTRY.size
        if self._map is None:  # a single entry is not worth a map
            values: tuple[int, int] = self.ENTRY.unpack(self._opened().read(start, size))
        else:
            values = self.ENTRY.unpack_from(self._map, start)
        return values

    def _last_slot_at_most(self, target: int, at: int, width: int) -> int:
        """The last entry whose field at byte `at` is not above `target`; -1 if there is none."""
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
        return self._last_slot_at_most(offset - self.base_offset, self.OFFSET_AT, 4)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and above."""
        slot = self._last_slot_up_to_offset(offset - 1)
        self._keep(slot + 1)

    def _keep(self, entries: int) -> None:
        self._write_out()
        self._entries = entries
        self._last = None
