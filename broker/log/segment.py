"""One segment: a `.log` file with its offset, time and transaction index.

Index rules (Kafka's, to the byte): before a batch, if more than `index.interval.bytes` were
appended since the last entry, the offset index gets (last offset of the batch, its position) and
the time index (largest timestamp so far, last offset of the batch that has it). Rolling and closing
write one last time entry and cut the indexes to their entries. (Before Kafka 3.9 an entry stood for
a whole append: its last offset, its first position. Such indexes are read as well.)

An index is a shortcut that can always be made again. Indexes of a segment loaded from disk are
looked at when first used; where one does not agree with the log, both are rebuilt.
"""

import logging
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from broker.clock import Clock
from broker.errors import CorruptRecord
from broker.log.config import LogConfig
from broker.log.file_records import BatchPosition, FileRecords
from broker.log.files import Buffer, FileSystem, OpenFile
from broker.log.index_check import find_index_problem, is_sound_time_entry
from broker.log.layout import (
    LOG,
    MAX_RELATIVE_OFFSET,
    OFFSET_INDEX,
    SEGMENT_FILES,
    TIME_INDEX,
    TXN_INDEX,
    offset_file,
)
from broker.log.offset_index import OffsetIndex
from broker.log.offsets import FetchData
from broker.log.time_index import TimeIndex, TimestampOffset
from broker.log.transaction_index import TransactionIndex
from broker.records.batch import BatchHeader
from broker.records.layout import LOG_OVERHEAD, NO_TIMESTAMP

logger = logging.getLogger(__name__)

_TAIL_BATCHES: Final = 16
"""So far back a reader may lag and be served without a look at index and file."""

_READERS: Final = 16
"""So many readers of a segment, each going on where it was, are served without its index."""


class LogSegment:
    """A stretch of the log, from `base_offset` to that of the next segment.

    Field `_max_timestamp`: largest timestamp so far and its batch; None until asked for.
    Field `_rolling_timestamp`: that of the first batch, which time-based rolling counts from;
      None until asked for.
    Field `_is_dirty`: whether files changed since they were last flushed.
    Field `_entries_left`: Invariant: at least so many entries fit both indexes.
    Field `_tail`: the batches appended last, by the offset after the one before each: where
    followers and consumers go on that have seen all so far. Field `_tail_end`: the offset after all
    of them; -1 while that is not known.
    Field `_next`: the offsets with which readers go on that got one batch last time, and the
    positions of these.
    Field `_bytes_since_last_index_entry`: Invariant: at most `index_interval_bytes` and one append.
    """

    __slots__ = (
        "_bytes_since_last_index_entry",
        "_created_ms",
        "_entries_left",
        "_fs",
        "_is_checked",
        "_is_dirty",
        "_max_timestamp",
        "_next",
        "_offset_index",
        "_roll_jitter_ms",
        "_rolling_timestamp",
        "_tail",
        "_tail_end",
        "_time_index",
        "_txn_index",
        "base_offset",
        "config",
        "directory",
        "log",
        "suffix",
        "was_used",
    )

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        fs: FileSystem,
        clock: Clock,
        suffix: str = "",
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.config = config
        self._fs = fs
        self._created_ms = clock.now_ms()
        jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
        self._roll_jitter_ms = random.randrange(jitter_ms) if jitter_ms else 0  # noqa: S311
        self.log = FileRecords(self.path(LOG), fs)
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TransactionIndex | None = None
        self._is_checked = False
        self._is_dirty = False
        self._tail: dict[int, BatchPosition] = {}
        self._tail_end = -1
        self._next: dict[int, int] = {}
        self._entries_left = 0
        self._max_timestamp: TimestampOffset | None = None
        self._rolling_timestamp: int | None = None
        self._bytes_since_last_index_entry = 0
        self.was_used = False

    def create(self) -> None:
        """Make the files of a new, empty segment, over whatever had their names."""
        self._fs.remove(self.path(TXN_INDEX))
        self.log.create(self.config.segment_bytes if self.config.preallocate else 0)
        self._is_checked = self._is_dirty = True
        self.offset_index.create()
        self.time_index.create()

    def path(self, kind: str) -> Path:
        """Where the file of that kind is, or would be."""
        return offset_file(self.directory, self.base_offset, kind, self.suffix)

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size={self.size})"

    # --- parts -------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes of batches."""
        return self.log.size

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index; it agrees with the log."""
        if self._offset_index is None:
            max_bytes = self.config.segment_index_bytes
            path = self.path(OFFSET_INDEX)
            self._offset_index = OffsetIndex(path, self.base_offset, max_bytes, self._fs)
        if not self._is_checked:
            self._check_indexes()
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The time index; it agrees with the log."""
        if self._time_index is None:
            max_bytes = self.config.segment_index_bytes
            path = self.path(TIME_INDEX)
            self._time_index = TimeIndex(path, self.base_offset, max_bytes, self._fs)
        if not self._is_checked:
            self._check_indexes()
        return self._time_index

    @property
    def txn_index(self) -> TransactionIndex:
        """The aborted transactions whose marker is in this segment."""
        if self._txn_index is None:
            self._txn_index = TransactionIndex(self.path(TXN_INDEX), self._fs)
        return self._txn_index

    def _check_indexes(self) -> None:
        """Look once at the ends of both indexes, and rebuild them if they are not this log's."""
        self._is_checked = True
        interval_bytes = self.config.index_interval_bytes
        try:
            problem = find_index_problem(
                self.log, self.offset_index, self.time_index, interval_bytes
            )
        except (CorruptRecord, ValueError) as error:
            problem = str(error)
        if problem:
            logger.warning("rebuilding indexes segment=%s: %s", self.log.path, problem)
            self.rebuild_indexes()

    # --- appending ---------------------------------------------------------------------------

    def can_hold(self, offset: int) -> bool:
        """Whether an index entry of this segment can express the offset."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def should_roll(self, size: int, max_timestamp: int, last_offset: int, now_ms: int) -> bool:
        """Whether an append of `size` bytes must go to a new segment: full, old, or unindexable."""
        config, used = self.config, self.log.size
        return (
            used > config.segment_bytes - size
            or (used > 0 and self._is_roll_due(now_ms, max_timestamp))
            or (self._entries_left <= 0 and self._has_full_index())
            or not 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
        )

    def _has_full_index(self) -> bool:
        """Each append asks, so the indexes are asked only when their room may have run out."""
        self._entries_left = min(self.offset_index.entries_left, self.time_index.entries_left)
        return self._entries_left <= 0

    def _is_roll_due(self, now_ms: int, max_timestamp: int) -> bool:
        first = self._rolling_timestamp
        if first is None:
            first = self._first_timestamp()
        waited_ms = max_timestamp - first if first >= 0 else now_ms - self._created_ms
        return waited_ms > self.config.max_segment_ms - self._roll_jitter_ms

    def _first_timestamp(self) -> int:
        if self._rolling_timestamp is None:
            first = next(self.log.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            self._rolling_timestamp = first[1].max_timestamp
        return self._rolling_timestamp

    @property
    def first_batch_timestamp(self) -> int | None:
        """The timestamp of the first batch; None where there is none."""
        timestamp = self._first_timestamp()
        return timestamp if timestamp >= 0 else None

    def append(self, buffers: Sequence[Buffer], size: int, headers: Iterable[BatchHeader]) -> None:
        """Write one append, `size` bytes in all, and index its batches, which have these headers.

        After an OSError the segment is as it was: no byte, no offset, no timestamp of it remains.
        """
        self.was_used = self._is_dirty = True
        position = self.log.size
        self.log.append(buffers, size)
        try:
            self._index(headers, position)
        except OSError:
            self._forget_tail()
            self.log.cut_back(position)
            raise

    def append_batch(
        self, buffers: Sequence[Buffer], size: int, last_offset: int, max_timestamp: int
    ) -> None:
        """Write and index a single batch; see `append`."""
        self.was_used = self._is_dirty = True
        log = self.log
        position = log.size
        log.append(buffers, size)
        try:
            self._index_batch(position, size, last_offset, max_timestamp)
        except OSError:
            self._forget_tail()
            log.cut_back(position)
            raise

    def _index(self, headers: Iterable[BatchHeader], position: int) -> None:
        """Note timestamps, and write the index entries that are due, from `position` on."""
        before = self._max_timestamp, self._bytes_since_last_index_entry
        try:
            for header in headers:
                size = header.batch_length + LOG_OVERHEAD
                last_offset = header.base_offset + header.last_offset_delta
                self._index_batch(position, size, last_offset, header.max_timestamp)
                position += size
        except OSError:
            self._max_timestamp, self._bytes_since_last_index_entry = before
            raise

    def _index_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        largest = self._max_timestamp or self.max_timestamp
        if max_timestamp > largest[0]:
            largest = TimestampOffset(max_timestamp, last_offset)
        if not position:
            self._rolling_timestamp = max_timestamp
        if self._bytes_since_last_index_entry > self.config.index_interval_bytes:
            self._append_entries(last_offset, position, largest)
            self._bytes_since_last_index_entry = 0
        self._max_timestamp = largest
        self._bytes_since_last_index_entry += size
        if self._tail_end >= 0:
            self._tail[self._tail_end] = BatchPosition(position, size, last_offset)
            if len(self._tail) > _TAIL_BATCHES:
                del self._tail[next(iter(self._tail))]
        self._tail_end = last_offset + 1

    def _forget_tail(self) -> None:
        self._tail.clear()
        self._tail_end = -1
        self._next.clear()

    def _append_entries(self, offset: int, position: int, largest: TimestampOffset) -> None:
        offset_index, time_index = self.offset_index, self.time_index
        offset_index.append(offset, position)
        try:
            time_index.maybe_append(*largest)
        except OSError:
            offset_index.truncate_to(offset)
            raise
        self._entries_left -= 1

    @property
    def max_timestamp(self) -> TimestampOffset:
        """The largest timestamp of the segment, the last offset of its batch; (-1, …) if none."""
        if self._max_timestamp is None:
            self._max_timestamp = self.time_index.last_entry
        return self._max_timestamp

    @property
    def largest_timestamp(self) -> int:
        """What retention by time goes by: the largest timestamp, or else when the file changed."""
        timestamp = self.max_timestamp.timestamp
        return timestamp if timestamp >= 0 else self.last_modified_ms

    @property
    def last_modified_ms(self) -> int:
        """When the file was last written to."""
        return self.log.path.stat().st_mtime_ns // 1_000_000

    # --- reading -----------------------------------------------------------------------------

    def find_batch(self, offset: int) -> BatchPosition | None:
        """The first batch that ends with `offset` or later; None beyond the end.

        A wrong index entry in the middle, which the look at first use cannot see, shows here: the
        batch at its position ends with another offset.
        """
        self.was_used = True
        if (found := self._tail.get(offset)) is not None:
            return found
        if (position := self._next.pop(offset, None)) is not None:
            return self.log.search_for_offset(offset, position)
        entry = self.offset_index.lookup(offset)
        if not entry.position:
            return self.log.search_for_offset(offset, 0)
        try:
            return self.log.search_for_offset(offset, entry.position, entry.offset)
        except CorruptRecord as error:
            logger.warning("rebuilding indexes segment=%s: %s", self.log.path, error)
        self.rebuild_indexes()
        return self.log.search_for_offset(offset, self.offset_index.lookup(offset).position)

    def position_of(self, offset: int) -> int:
        """Where the batch that `find_batch` finds begins; the end of the file if it finds none."""
        found = self.find_batch(offset)
        return self.size if found is None else found.position

    def find_time_entry(self, timestamp: int) -> TimestampOffset:
        """The last time entry not younger than `timestamp`; a wrong one is found and mended."""
        entry = self.time_index.lookup(timestamp)
        if entry == (NO_TIMESTAMP, self.base_offset):
            return entry
        problem = f"{entry} is wrong"
        try:
            if is_sound_time_entry(self.log, self.offset_index, entry):
                return entry
        except CorruptRecord as error:
            problem = str(error)
        logger.warning("rebuilding indexes segment=%s: %s", self.log.path, problem)
        self.rebuild_indexes()
        return self.time_index.lookup(timestamp)

    def read(
        self, offset: int, max_bytes: int, max_position: int, *, min_one_message: bool
    ) -> FetchData | None:
        """At most `max_bytes` from the batch that holds `offset`, up to `max_position`.

        With `min_one_message` the first batch comes whole, however large. None beyond the end.
        """
        found = self.find_batch(offset)
        if found is None:
            return None
        self._next[found.last_offset + 1] = found.position + found.size
        if len(self._next) > _READERS:
            del self._next[next(iter(self._next))]
        limit = max(max_bytes, found.size) if min_one_message else max_bytes
        length = max(min(max_position - found.position, limit), 0)
        return FetchData(self.log.slice(found.position, length), limit < found.size)

    def read_next_offset(self) -> int:
        """The offset after the last batch; the base offset of an empty segment."""
        next_offset = self.base_offset
        for _, header in self.log.headers(self.offset_index.last_entry.position):
            next_offset = header.next_offset
        return next_offset

    # --- changing ----------------------------------------------------------------------------

    def rebuild_indexes(self) -> None:
        """Make both indexes again from the headers of the log; the log is trusted."""
        self.index_again(self.log.headers())

    def index_again(self, headers: Iterable[tuple[int, BatchHeader]]) -> None:
        """Reset both indexes and write the entries that `headers` deserve, each as one append.

        The time index ends with the largest timestamp and both are trimmed, as after a roll.
        """
        self._is_checked = self._is_dirty = True
        self._forget_tail()
        self._entries_left = 0
        self.offset_index.reset()
        self.time_index.reset()
        largest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        indexed_position = 0
        for position, header in headers:
            if header.max_timestamp > largest.timestamp:
                largest = TimestampOffset(header.max_timestamp, header.last_offset)
            if position - indexed_position > self.config.index_interval_bytes:
                self.offset_index.append(header.last_offset, position)
                self.time_index.maybe_append(*largest)
                indexed_position = position
        self._max_timestamp = largest
        self._bytes_since_last_index_entry = 0
        self._trim_indexes()

    def _trim_indexes(self) -> None:
        self.time_index.maybe_append(*self.max_timestamp)
        self.offset_index.trim()
        self.time_index.trim()

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that holds `offset` and all after it; how many bytes that were."""
        found = self.find_batch(offset)
        self._is_dirty = True
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        dropped = 0
        if found is not None:
            dropped = self.size - found.position
            self.log.truncate_to(found.position)
        if not self.size:
            self._rolling_timestamp = None
        self._bytes_since_last_index_entry = 0
        self._forget_tail()
        self._entries_left = 0
        self._max_timestamp = self._read_largest_timestamp()
        return dropped

    def _read_largest_timestamp(self) -> TimestampOffset:
        """The last time entry, or something larger in the batches that follow it."""
        largest = self.time_index.last_entry
        for _, header in self.log.headers(self.position_of(largest.offset)):
            if header.max_timestamp > largest.timestamp:
                largest = TimestampOffset(header.max_timestamp, header.last_offset)
        return largest

    def on_become_inactive(self) -> None:
        """Another segment takes the appends: write the last time entry, cut indexes and file.

        Descriptors of the indexes are given back; the next lookup opens them again.
        """
        self._forget_tail()
        self._trim_indexes()
        self.log.trim()
        self.offset_index.release()
        self.time_index.release()

    def take_unflushed(self) -> list[OpenFile]:
        """The files, if they changed since the last call; the caller flushes them.

        So that flushing needs no lock: a file that is renamed or deleted meanwhile stays open.
        """
        if not self._is_dirty:
            return []
        self._is_dirty = False
        files = [self.log.open_file(), self.offset_index.open_file(), self.time_index.open_file()]
        aborted = self.txn_index.open_file()
        return files if aborted is None else [*files, aborted]

    def flush(self) -> None:
        """Bring log and indexes to the medium."""
        for file in self.take_unflushed():
            self._fs.sync(file)

    def close(self) -> None:
        """Leave the files as a clean stop leaves them; files that nobody used stay untouched."""
        if self._time_index is not None and self._max_timestamp is not None:
            self._time_index.maybe_append(*self._max_timestamp)
        if self._offset_index is not None:
            self._offset_index.close()
        if self._time_index is not None:
            self._time_index.close()
        self.log.trim()
        self.release()

    def release(self) -> None:
        """Give all descriptors back; the next use opens the files again."""
        for part in (self.log, self._offset_index, self._time_index, self._txn_index):
            if part is not None:
                part.release()
        self.was_used = False

    def change_suffix(self, suffix: str) -> None:
        """Rename all files: `.cleaned` to `.swap` to none, or to `.deleted`.

        The log comes first: where a crash leaves an index without its log, loading drops it.
        """
        old_paths = [self.path(kind) for kind in SEGMENT_FILES]
        self.suffix = suffix
        for kind, old_path in zip(SEGMENT_FILES, old_paths, strict=True):
            if old_path.exists():
                self._fs.rename(old_path, self.path(kind))
        self._update_paths()

    def change_directory(self, directory: Path) -> None:
        """The directory was renamed: know the files under their new path."""
        self.directory = directory
        self._update_paths()

    def _update_paths(self) -> None:
        parts = (self.log, self._offset_index, self._time_index, self._txn_index)
        for kind, part in zip(SEGMENT_FILES, parts, strict=True):
            if part is not None:
                part.path = self.path(kind)

    def delete(self) -> None:
        """Remove the files; readers that hold a slice can finish."""
        self.release()
        for kind in SEGMENT_FILES:
            self._fs.remove(self.path(kind))
