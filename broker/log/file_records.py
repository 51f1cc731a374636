"""A segment's `.log` file: batches are appended at its end and found by walking their headers.

The size kept in memory is authoritative: bytes beyond it (a preallocated tail, or the remains of a
failed write) are not part of the log.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from broker.errors import CorruptRecord
from broker.log.files import Buffer, FileSlice, FileSystem, OpenFile
from broker.records.batch import Batch, BatchHeader, iterate_batches
from broker.records.layout import (
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MIN_BATCH_LENGTH,
    MIN_MESSAGE_SIZE_V0,
)

# Bytes per read of a header walk: a little more than the usual distance between two index entries,
# so that a lookup among small batches takes one read.
WALK_BYTES = 4096 + 512
SCAN_BYTES = 1024 * 1024
# Of a header: base offset, batch length, magic, last offset delta (which old formats do not have).
_WALKED = Struct(">qi4xB6xi")
# Appended to a read of a walk that is shorter: an old message at the end of a file can be.
_PADDING = bytes(_WALKED.size)


class BatchPosition(NamedTuple):
    """Where a batch lies in the file, and the last offset it holds."""

    position: int
    size: int
    last_offset: int


class FileRecords:
    """The batches of one segment. Invariant: a batch ends at `size`, unless a write failed."""

    __slots__ = ("_file", "_fs", "_has_tail", "_size", "path")

    def __init__(self, path: Path, fs: FileSystem) -> None:
        self.path = path
        self._fs = fs
        self._file: OpenFile | None = None
        self._size = -1  # -1: unknown until first used
        self._has_tail = False  # preallocated bytes beyond the log's end

    def create(self, preallocate_bytes: int) -> None:
        """Create the file, replacing an existing one, and preallocate this many bytes."""
        self._file = self._fs.create_file(self.path)
        if preallocate_bytes:
            self._fs.truncate(self._file, preallocate_bytes)
        self._has_tail = preallocate_bytes > 0
        self._size = 0
        # Most partitions of a new topic wait for their first batch; they need no descriptor.
        self.release()

    def _opened(self) -> OpenFile:
        if self._file is None:
            self._file = self._fs.open_file(self.path)
            if self._size < 0:
                self._size = self._file.size()
        return self._file

    @property
    def size(self) -> int:
        """Bytes of the log in this file."""
        if self._size < 0:
            self._size = self.path.stat().st_size
        return self._size

    # --- writing -----------------------------------------------------------------------------

    def append(self, buffers: Sequence[Buffer], length: int) -> None:
        """Write `length` bytes at the end; after an error the file ends where it ended before."""
        file = self._file or self._opened()
        try:
            self._fs.write(file, buffers, self._size)
        except OSError:
            self.cut_back(self._size)
            raise
        self._size += length

    def cut_back(self, size: int) -> None:
        """Cut the file to `size` after a failed write; an error here is ignored.

        If the disk refuses even that, recovery truncates the bytes at the next start.
        """
        self._size = size
        with contextlib.suppress(OSError):
            self._fs.truncate(self._opened(), size)

    def truncate_to(self, size: int) -> None:
        """Cut the file (and any preallocated tail) to `size`."""
        self._fs.truncate(self._opened(), size)
        self._size = size
        self._has_tail = False

    def trim(self) -> None:
        """Cut a preallocated tail."""
        if self._has_tail:
            self.truncate_to(self.size)

    def open_file(self) -> OpenFile:
        """The file, for a caller that flushes it."""
        return self._opened()

    def release(self) -> None:
        """Release the descriptor; the next use opens the file again."""
        self._file = None

    # --- reading -----------------------------------------------------------------------------

    def slice(self, position: int, length: int) -> FileSlice:
        """A slice for a fetch response, not read yet; never beyond the end of the log."""
        file = self._file or self._opened()
        return FileSlice(file, position, min(length, self.size - position))

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes of the log from `position`."""
        file = self._file or self._opened()
        return file.read(position, min(length, self.size - position))

    def batches(self, position: int = 0) -> Iterator[tuple[int, Batch]]:
        """Every whole batch from `position`, with its position in the file.

        Ends where a batch is cut short; CorruptRecord where bytes cannot begin a batch.
        """
        want = SCAN_BYTES
        while data := self.read(position, want):
            walk = iterate_batches(data)
            try:
                for batch in walk:
                    yield position + batch.position, batch
            except CorruptRecord as error:
                raise self._corrupt(position, walk.position, error) from None
            if walk.position:
                position += walk.position
                want = SCAN_BYTES
            elif len(data) < want or not self._is_larger(position, len(data), data):
                return
            else:
                want = self._batch_size(data)

    def _is_larger(self, position: int, found: int, data: bytes) -> bool:
        """Whether a whole batch is here that needs a larger read; a torn one is not read."""
        return found < self._batch_size(data) <= self.size - position

    def _corrupt(self, start: int, position: int, error: CorruptRecord) -> CorruptRecord:
        """The error of a walk of the bytes from `start`, with file and position in its message."""
        reason = str(error).removeprefix(f"position {position}: ")
        return CorruptRecord(f"{self.path} position {start + position}: {reason}")

    @staticmethod
    def _batch_size(data: bytes) -> int:
        return int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """As `batches`, but without reading the records: large batches are skipped."""
        data, start = b"", position
        while self.size - position >= HEADER_SIZE_UP_TO_MAGIC:
            at = position - start
            if len(data) - at < HEADER_SIZE:
                data, start, at = self.read(position, WALK_BYTES), position, 0
            header = self._header(data, at, position)
            if header is None or position + header.size_in_bytes > self.size:
                return
            yield position, header
            position += header.size_in_bytes

    def _header(self, data: bytes, at: int, position: int) -> BatchHeader | None:
        """The header at `at` of `data`; None where the file ends inside it."""
        if data[at + MAGIC_POSITION] != CURRENT_MAGIC:
            return next((batch.header for _, batch in self.batches(position)), None)
        if len(data) - at < HEADER_SIZE:
            return None
        header = BatchHeader._make(HEADER.unpack_from(data, at))
        if header.batch_length < MIN_BATCH_LENGTH:
            raise CorruptRecord(
                f"{self.path} position {position}: expected a batch length of at least "
                f"{MIN_BATCH_LENGTH}, found {header.batch_length}"
            )
        return header

    def search_for_offset(
        self, offset: int, position: int, indexed_offset: int | None = None
    ) -> BatchPosition | None:
        """The first batch from `position` on that ends at `offset` or later; None if none does.

        `indexed_offset` is what an index says of `position`; CorruptRecord if no batch is there, or
        one that begins later. Every fetch comes through here, so only three fields of each header
        are read.
        """
        data, start, end = b"", position, self.size
        if indexed_offset is not None and not 0 <= position <= end - HEADER_SIZE_UP_TO_MAGIC:
            raise CorruptRecord(
                f"{self.path}: expected a position in {end} bytes, found {position}"
            )
        while end - position >= HEADER_SIZE_UP_TO_MAGIC:
            at = position - start
            if len(data) - at < _WALKED.size:
                data, start, at = self.read(position, WALK_BYTES), position, 0
                if len(data) < _WALKED.size:
                    data += _PADDING
            base_offset, length, magic, last_offset_delta = _WALKED.unpack_from(data, at)
            if length < MIN_MESSAGE_SIZE_V0:
                raise CorruptRecord(
                    f"{self.path} position {position}: expected a batch length of at least "
                    f"{MIN_MESSAGE_SIZE_V0}, found {length}"
                )
            if indexed_offset is not None:
                self._check_indexed(position, base_offset, magic, indexed_offset)
                indexed_offset = None
            last_offset = base_offset + last_offset_delta if magic == CURRENT_MAGIC else base_offset
            size = length + LOG_OVERHEAD
            if position + size > end:
                return None
            if last_offset >= offset:
                return BatchPosition(position, size, last_offset)
            position += size
        return None

    def _check_indexed(self, position: int, base_offset: int, magic: int, indexed: int) -> None:
        if magic > CURRENT_MAGIC or not 0 <= base_offset <= indexed:
            raise CorruptRecord(
                f"{self.path} position {position}: expected a batch from offset {indexed} or "
                f"below, found offset {base_offset} magic {magic}"
            )
