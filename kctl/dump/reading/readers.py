"""The broker's readers of log files, opened read-only."""

import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from broker.errors import CorruptRecord
from broker.log.file_records import FileRecords
from broker.log.files import FileSystem, OpenFile
from broker.log.offset_index import OffsetIndex, OffsetPosition
from broker.log.time_index import TimeIndex, TimestampOffset
from broker.log.transaction_index import TransactionIndex
from broker.records.batch import Batch

# The maximum size of an index, which matters to writers only.
_NO_GROWTH = 0


class ReadOnlyFiles(FileSystem):
    """A file system that opens files read-only; writes fail."""

    def open_file(self, path: Path, *, create: bool = False) -> OpenFile:
        """Open for reading; never creates a file."""
        del create
        return OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)


READ_ONLY = ReadOnlyFiles()


def ignore(_: object) -> None:
    """A callback that does nothing."""


def open_records(path: Path) -> FileRecords:
    """A segment's batches; OSError if the file cannot be read."""
    READ_ONLY.open_file(path)
    return FileRecords(path, READ_ONLY)


def open_offset_index(path: Path, base_offset: int) -> OffsetIndex:
    """A segment's offset index; OSError if the file cannot be read."""
    READ_ONLY.open_file(path)
    return OffsetIndex(path, base_offset, _NO_GROWTH, READ_ONLY)


def open_time_index(path: Path, base_offset: int) -> TimeIndex:
    """A segment's time index; OSError if the file cannot be read."""
    READ_ONLY.open_file(path)
    return TimeIndex(path, base_offset, _NO_GROWTH, READ_ONLY)


def open_txn_index(path: Path) -> TransactionIndex:
    """A segment's aborted transactions; OSError if the file cannot be read."""
    READ_ONLY.open_file(path)
    return TransactionIndex(path, READ_ONLY)


def count_offset_entries(index: OffsetIndex) -> int:
    """The number of entries before the zeros, found by bisection.

    The file of an active segment is preallocated (10 MB by default): reading all of it costs 20 ms.
    """
    return bisect_left(range(index.entries), True, key=lambda at: not index.entry(at).position)


def last_time_entry(index: TimeIndex) -> TimestampOffset | None:
    """The last entry before the zeros, found by bisection; None if there is no entry."""

    def is_zero(slot: int) -> bool:
        entry = index.entry(slot)
        return not entry.timestamp and entry.offset == index.base_offset

    count = bisect_left(range(index.entries), True, key=is_zero)
    return index.entry(count - 1) if count else None


def offset_entries(index: OffsetIndex) -> Iterator[OffsetPosition]:
    """The entries before the zeros at the end of an index that was not closed.

    No entry has position 0, so zeros are not an entry.
    """
    for slot in range(index.entries):
        entry = index.entry(slot)
        if not entry.position:
            return
        yield entry


def time_entries(index: TimeIndex) -> Iterator[TimestampOffset]:
    """The entries before the zeros at the end; a first entry with timestamp 0 counts as zeros."""
    for slot in range(index.entries):
        entry = index.entry(slot)
        if entry.offset == index.base_offset and (slot or not entry.timestamp):
            return
        yield entry


def batches_within(records: FileRecords, max_bytes: int | None) -> Iterator[tuple[int, Batch]]:
    """The whole batches among the first `max_bytes` of the file (all, if None)."""
    for position, batch in records.batches():
        if max_bytes is not None and position + batch.size_in_bytes > max_bytes:
            return
        yield position, batch


def corrupt_batch(path: Path, position: int, error: Exception) -> CorruptRecord:
    """An error in the records of the batch at `position`, with the file name."""
    # The position in the message is relative to the part of the file that was read.
    reason = re.sub(r"^batch at position \d+, ", "", str(error))
    return CorruptRecord(f"{path} position {position}: {reason}")
