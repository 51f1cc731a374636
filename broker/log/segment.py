"""One segment: a `.log` file with its offset, time and transaction index.

Index rules, the same as Kafka's to the byte: when a batch is appended and more than
`index.interval.bytes` were appended since the last entry, the offset index gets (last offset of the
batch, its position) and the time index gets (largest timestamp so far, last offset of the batch
that has it). Rolling and closing write a last time entry and trim the indexes. Before Kafka 3.9 an
entry described a whole append (its last offset, its first position); such indexes are read as well.

`SegmentIndexes` opens the indexes, checks them and rebuilds them from the log if they are wrong.

Most reads need no index. Consumers and followers at the end of the log are served from `_tail`, the
positions of the last batches; readers behind it continue at the position after their last read,
which is in `_next`.
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
from broker.log.layout import (
    LOG,
    MAX_RELATIVE_OFFSET,
    SEGMENT_FILES,
    TXN_INDEX,
    offset_file,
)
from broker.log.offsets import FetchData
from broker.log.segment_indexes import SegmentIndexes
from broker.log.time_index import TimestampOffset
from broker.records.batch import BatchHeader
from broker.records.layout import NO_TIMESTAMP

logger = logging.getLogger(__name__)

_TAIL_BATCHES: Final = 16
"""Readers at most this many batches behind the end are served without index and file reads."""

_READERS: Final = 16
"""Readers of one segment whose next position is remembered."""


IndexedBatch = tuple[int, int, int]
"""What the indexes need of an appended batch: size, last offset, max timestamp."""


def indexed_batches(headers: Iterable[BatchHeader]) -> list[IndexedBatch]:
    """The batches with these headers, as `LogSegment.append` takes them."""
    return [(h.size_in_bytes, h.last_offset, h.max_timestamp) for h in headers]


class LogSegment:
    """The part of a log from `base_offset` up to the base offset of the next segment.

    Field `log`: the batches. Invariant: offsets increase and are at least `base_offset`.
    Field `indexes`: the three indexes. Invariant: what they hold is in `log`.
    Field `_max_timestamp`: the largest timestamp and the last offset of its batch; None until read.
    Field `_rolling_timestamp`: the timestamp of the first batch, from which segment.ms counts; None
      until read.
    Field `_is_dirty`: whether files changed since they were last flushed.
    Field `_tail`: the last batches appended, by the offset at which a reader requests each: the one
      after the batch before it. Invariant: at most `_TAIL_BATCHES`.
    Field `_tail_end`: the offset after the last batch of `_tail`; -1 if unknown.
    Field `_next`: for readers that got one batch, the offset they will request next and its
      position. Invariant: at most `_READERS`.
    Field `_bytes_since_last_index_entry`: Invariant: at most `index_interval_bytes` and one append.
    Field `was_used`: whether a client read or wrote since the last check for idle files.
    """

    __slots__ = (
        "_bytes_since_last_index_entry",
        "_created_ms",
        "_fs",
        "_is_dirty",
        "_max_timestamp",
        "_next",
        "_roll_jitter_ms",
        "_rolling_timestamp",
        "_tail",
        "_tail_end",
        "base_offset",
        "config",
        "directory",
        "indexes",
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
        self.indexes = SegmentIndexes(self.log, directory, base_offset, config, fs, suffix)
        self._is_dirty = False
        self._tail: dict[int, BatchPosition] = {}
        self._tail_end = -1
        self._next: dict[int, int] = {}
        self._max_timestamp: TimestampOffset | None = None
        self._rolling_timestamp: int | None = None
        self._bytes_since_last_index_entry = 0
        self.was_used = False

    def create(self) -> None:
        """Create the files of a new, empty segment, replacing existing ones."""
        self._fs.remove(self.path(TXN_INDEX))
        self.log.create(self.config.segment_bytes if self.config.preallocate else 0)
        self._is_dirty = True
        self.indexes.create()

    def path(self, kind: str) -> Path:
        """The path of the file of this kind, whether or not it exists."""
        return offset_file(self.directory, self.base_offset, kind, self.suffix)

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size={self.size})"

    # --- parts -------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes of batches.

        Without the preallocated tail of the file, which `trim` removes when the segment is
        finished.
        """
        return self.log.size

    # --- appending ---------------------------------------------------------------------------

    def can_hold(self, offset: int) -> bool:
        """Whether an index entry of this segment can express the offset."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def should_roll(self, size: int, max_timestamp: int, last_offset: int, now_ms: int) -> bool:
        """Whether an append of `size` bytes needs a new segment: full, old, or out of range."""
        # In the order of Kafka's shouldRoll. The index check costs nothing while `entries_left` is
        # positive: only then are the entries counted again. The last condition is for offsets
        # that do not fit into an index entry, which stores them relative to the base in 32 bits.
        used = self.log.size
        return (
            used > self.config.segment_bytes - size
            or (used > 0 and self._is_roll_due(now_ms, max_timestamp))
            or (self.indexes.entries_left <= 0 and self.indexes.count_entries_left() <= 0)
            or not 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
        )

    def _is_roll_due(self, now_ms: int, max_timestamp: int) -> bool:
        """Whether segment.ms has passed, less the jitter.

        Time is counted from the first batch's timestamp to the new batch's, as in Kafka; without
        timestamps, by the wall clock since the segment was created.

        The jitter is drawn once per segment. It spreads the rolls of partitions that were created
        together, which would otherwise write and flush at the same moment.
        """
        first = self._rolling_timestamp
        if first is None:
            first = self._first_timestamp()
        waited_ms = max_timestamp - first if first >= 0 else now_ms - self._created_ms
        return waited_ms > self.config.max_segment_ms - self._roll_jitter_ms

    def _first_timestamp(self) -> int:
        """The timestamp of the first batch, read once; NO_TIMESTAMP for an empty segment."""
        if self._rolling_timestamp is None:
            first = next(self.log.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            self._rolling_timestamp = first[1].max_timestamp
        return self._rolling_timestamp

    @property
    def first_batch_timestamp(self) -> int | None:
        """The timestamp of the first batch; None if it has none."""
        timestamp = self._first_timestamp()
        return timestamp if timestamp >= 0 else None

    def append(self, buffers: Sequence[Buffer], size: int, batches: Iterable[IndexedBatch]) -> None:
        """Write `size` bytes, which hold these batches, and the index entries that are due.

        After an OSError the segment is as it was: no byte, no offset, no timestamp of it remains.

        The caller holds the log's lock. Nothing is flushed here: after a crash, recovery checks the
        batches above the recovery point, truncates at the first invalid one and rebuilds the
        indexes.
        """
        self.was_used = self._is_dirty = True
        log = self.log
        # What `_index_batch` changes is saved, so that an index that cannot be written (disk full,
        # too many open files) takes the batches back too: an indexed log and its offsets agree.
        start = position = log.size
        before = self._max_timestamp, self._bytes_since_last_index_entry
        log.append(buffers, size)
        try:
            for batch_size, last_offset, max_timestamp in batches:
                self._index_batch(position, batch_size, last_offset, max_timestamp)
                position += batch_size
        except OSError:
            self._max_timestamp, self._bytes_since_last_index_entry = before
            self._forget_tail()
            log.cut_back(start)
            raise

    def _index_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Account for one batch that was written at `position`, by the rules of this module.

        The entry is written before the batch's own size is counted, as in Kafka: the first batch
        of a segment never gets one, because a lookup below the first entry starts at position 0.
        """
        largest = self._max_timestamp or self.max_timestamp
        if max_timestamp > largest[0]:
            largest = TimestampOffset(max_timestamp, last_offset)
        if not position:  # the first batch
            self._rolling_timestamp = max_timestamp
        if self._bytes_since_last_index_entry > self.config.index_interval_bytes:
            self.indexes.append(last_offset, position, largest)
            self._bytes_since_last_index_entry = 0
        self._max_timestamp = largest
        self._bytes_since_last_index_entry += size
        # The end before this batch is the offset that a reader of the previous one requests next.
        # It is unknown after a start or a truncation; the first append then only sets it.
        if self._tail_end >= 0:
            self._tail[self._tail_end] = BatchPosition(position, size, last_offset)
            if len(self._tail) > _TAIL_BATCHES:
                del self._tail[next(iter(self._tail))]
        self._tail_end = last_offset + 1

    def _forget_tail(self) -> None:
        """Forget all cached positions, after anything but an append has changed the file."""
        self._tail.clear()
        self._tail_end = -1
        self._next.clear()

    @property
    def max_timestamp(self) -> TimestampOffset:
        """The largest timestamp of the segment, the last offset of its batch; (-1, …) if none."""
        if self._max_timestamp is None:
            self._max_timestamp = self.indexes.time.last_entry
        return self._max_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The timestamp for retention.ms: the largest one, or else the file's mtime.

        Records of format 0 have no timestamp, and an empty segment has no records.
        """
        timestamp = self.max_timestamp.timestamp
        return timestamp if timestamp >= 0 else self.last_modified_ms

    @property
    def last_modified_ms(self) -> int:
        """When the file was last written to."""
        return self.log.path.stat().st_mtime_ns // 1_000_000

    # --- reading -----------------------------------------------------------------------------

    def find_batch(self, offset: int) -> BatchPosition | None:
        """The first batch that ends at `offset` or later; None beyond the end.

        A wrong entry in the middle of an index, which the check at first use cannot see, is found
        here: the batch at its position has other offsets. Both indexes are rebuilt then.

        Kafka's translateOffset, which always looks into the index. The cached positions of A and B
        give the same batch and only save the lookup.
        """
        self.was_used = True
        # A. at the end of the log; B. where this reader's last read ended; C. through the index.
        # The position of B is removed: one reader uses it once, and `read` adds the next.
        if (found := self._tail.get(offset)) is not None:
            return found
        if (position := self._next.pop(offset, None)) is not None:
            return self.log.search_for_offset(offset, position)
        entry = self.indexes.offset.lookup(offset)
        if not entry.position:
            return self.log.search_for_offset(offset, 0)
        try:
            return self.log.search_for_offset(offset, entry.position, entry.offset)
        except CorruptRecord as error:
            logger.warning("rebuilding indexes segment=%s: %s", self.log.path, error)
        self.rebuild_indexes()
        return self.log.search_for_offset(offset, self.indexes.offset.lookup(offset).position)

    def position_of(self, offset: int) -> int:
        """Where the batch that `find_batch` finds begins; the end of the file if it finds none."""
        found = self.find_batch(offset)
        return self.size if found is None else found.position

    def find_time_entry(self, timestamp: int) -> TimestampOffset:
        """The last time entry at or below `timestamp`; both indexes are rebuilt if it is wrong."""
        entry = self.indexes.time.lookup(timestamp)
        problem = self.indexes.describe_time_entry_problem(entry)
        if not problem:
            return entry
        logger.warning("rebuilding indexes segment=%s: %s", self.log.path, problem)
        self.rebuild_indexes()
        return self.indexes.time.lookup(timestamp)

    def read(
        self, offset: int, max_bytes: int, max_position: int, *, min_one_message: bool
    ) -> FetchData | None:
        """At most `max_bytes` from the batch that holds `offset`, up to `max_position`.

        With `min_one_message` the first batch is complete, however large. None beyond the end.

        The bytes are not read here: the result is a slice of the open file, which a plaintext
        connection sends with sendfile. The slice keeps the file open if the segment is deleted
        meanwhile.
        """
        found = self.find_batch(offset)
        if found is None:
            return None
        # Assumes that the reader gets one batch. If it gets more, its next offset is not in
        # `_next`, and this entry is evicted when it has become the oldest.
        self._next[found.last_offset + 1] = found.position + found.size
        if len(self._next) > _READERS:
            del self._next[next(iter(self._next))]
        limit = max(max_bytes, found.size) if min_one_message else max_bytes
        length = max(min(max_position - found.position, limit), 0)
        return FetchData(self.log.slice(found.position, length), limit < found.size)

    def read_next_offset(self) -> int:
        """The offset after the last batch; the base offset of an empty segment."""
        # The last index entry is at most index.interval.bytes and one append before the end.
        next_offset = self.base_offset
        for _, header in self.log.headers(self.indexes.offset.last_entry.position):
            next_offset = header.next_offset
        return next_offset

    # --- changing ----------------------------------------------------------------------------

    def rebuild_indexes(self, headers: Iterable[tuple[int, BatchHeader]] | None = None) -> None:
        """Rebuild offset and time index from `headers` (position, header).

        Without `headers`, those of the log are trusted. Cached positions are forgotten.

        Recovery passes the headers of the batches that it has checked; a lookup that met a wrong
        entry passes none.
        """
        self._forget_tail()
        self._max_timestamp = self.indexes.rebuild(
            self.log.headers() if headers is None else headers
        )
        self._bytes_since_last_index_entry = 0

    def truncate_to(self, offset: int) -> int:
        """Remove the batch that holds `offset` and all after it; returns the bytes removed."""
        # Found before the indexes are truncated: the lookup uses them.
        found = self.find_batch(offset)
        self._is_dirty = True
        # Indexes first: a crash in between leaves batches without entries, which lookups find by
        # reading on, and no entry that points beyond the end of the log.
        self.indexes.truncate_to(offset)
        dropped = 0
        if found is not None:
            dropped = self.size - found.position
            self.log.truncate_to(found.position)
        if not self.size:
            self._rolling_timestamp = None
        self._bytes_since_last_index_entry = 0
        self._forget_tail()
        self._max_timestamp = self._read_largest_timestamp()
        return dropped

    def _read_largest_timestamp(self) -> TimestampOffset:
        """The last time entry, or a larger timestamp of the batches after it."""
        largest = self.indexes.time.last_entry
        for _, header in self.log.headers(self.position_of(largest.offset)):
            if header.max_timestamp > largest.timestamp:
                largest = TimestampOffset(header.max_timestamp, header.last_offset)
        return largest

    def on_become_inactive(self) -> None:
        """Finish the segment when the log rolls: write the last time entry, trim indexes and file.

        The descriptors of the indexes are released; the next lookup opens them again.

        With the last time entry, the largest timestamp of a closed segment, on which retention.ms
        depends, is known without reading its batches. Kafka's onBecomeInactiveSegment.
        """
        self._forget_tail()
        self.indexes.finish(self.max_timestamp)
        self.log.trim()

    def take_unflushed(self) -> list[OpenFile]:
        """The files to flush, if they changed since the last call; the caller flushes them.

        Flushing needs no lock then: a file that is renamed or deleted meanwhile stays open.
        """
        if not (self._is_dirty or self.indexes.was_rebuilt):
            return []
        files = [self.log.open_file(), *self.indexes.open_files()]
        # Only now: if a file cannot be opened, the segment still needs a flush.
        self._is_dirty = self.indexes.was_rebuilt = False
        return files

    def flush(self) -> None:
        """Flush log and indexes to the medium."""
        for file in self.take_unflushed():
            self._fs.sync(file)

    def close(self) -> None:
        """Finish the files for a clean shutdown; files that were not used are not touched."""
        self.indexes.close(self._max_timestamp)
        self.log.trim()
        self.release()

    def release(self) -> None:
        """Release all descriptors; the next use opens the files again."""
        self.log.release()
        self.indexes.release()
        self.was_used = False

    def change_suffix(self, suffix: str) -> None:
        """Rename all files: `.cleaned` to `.swap` to none, or to `.deleted`.

        The log is renamed first: after a crash, loading removes an index without its log.
        """
        old_paths = [self.path(kind) for kind in SEGMENT_FILES]
        self.suffix = suffix
        for kind, old_path in zip(SEGMENT_FILES, old_paths, strict=True):
            if old_path.exists():
                self._fs.rename(old_path, self.path(kind))
        self._update_paths()

    def change_directory(self, directory: Path) -> None:
        """Update the paths after the directory was renamed."""
        self.directory = directory
        self._update_paths()

    def _update_paths(self) -> None:
        self.log.path = self.path(LOG)
        self.indexes.change_paths(self.directory, self.suffix)

    def update_config(self, config: LogConfig) -> None:
        """Apply new settings; the segment keeps its jitter."""
        self.config = self.indexes.config = config

    def delete(self) -> None:
        """Remove the files; readers that hold a slice can finish."""
        self.release()
        for kind in SEGMENT_FILES:
            self._fs.remove(self.path(kind))
