"""The broker's readers, opened so that nothing can be changed by looking at it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from broker.errors import CorruptRecord
from broker.log.file_records import FileRecords
from broker.log.files import FileSystem, OpenFile
from broker.log.offset_index import OffsetIndex, OffsetPosition
from broker.log.time_index import TimeIndex, TimestampOffset
from broker.log.transaction_index import TransactionIndex
from broker.records.batch import Batch

# What an index may grow to, which matters to writers only.
_NO_GROWTH = 0


class ReadOnlyFiles(FileSystem):
    """A disk on which files open for reading; whatever else is asked of it fails by itself."""

    def open_file(self, path: Path, *, create: bool = False) -> OpenFile:
        """Open for reading; a missing file stays missing whatever `create` says."""
        del create
        return OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)


READ_ONLY = ReadOnlyFiles()


def ignore(_: object) -> None:
    """Listens, and does nothing about it."""


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


def offset_entries(index: OffsetIndex) -> Iterator[OffsetPosition]:
    """The entries up to the zeros behind them, which an index has that was not closed (yet).

    No entry is at position 0, so zeros cannot be mistaken for one.
    """
    for slot in range(index.entries):
        entry = index.entry(slot)
        if not entry.position:
            return
        yield entry


def time_entries(index: TimeIndex) -> Iterator[TimestampOffset]:
    """The entries up to the zeros behind them; a first entry of 1970 is taken for zeros too."""
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
    """What is wrong with the records of the batch at `position`, named by file."""
    # The batch knows its place in the piece of the file that was read, not in the file.
    reason = re.sub(r"^batch at position \d+, ", "", str(error))
    return CorruptRecord(f"{path} position {position}: {reason}")
