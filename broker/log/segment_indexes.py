"""The indexes of one segment: opened and checked at first use, rebuilt when they are wrong.

Offset and time index can always be rebuilt from the log. Those loaded from disk are compared with
the log when they are first used (`index_check`); if one does not match, both are rebuilt. After
that, everything written through this object keeps them in step.

The transaction index cannot be checked against the log without the producer state; `recovery` does
that when it loads the segment.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from broker.log.config import LogConfig
from broker.log.file_records import FileRecords
from broker.log.files import FileSystem, OpenFile
from broker.log.index_check import describe_index_problem, describe_time_entry_problem
from broker.log.layout import OFFSET_INDEX, TIME_INDEX, TXN_INDEX, offset_file
from broker.log.offset_index import OffsetIndex
from broker.log.time_index import TimeIndex, TimestampOffset
from broker.log.transaction_index import TransactionIndex
from broker.records.batch import BatchHeader
from broker.records.layout import NO_TIMESTAMP

logger = logging.getLogger(__name__)


class SegmentIndexes:
    """The offset, time and transaction index that belong to `log`.

    Field `config`: the topic settings; a change applies to the next entry or rebuild.
    Field `entries_left`: Invariant: at least this many more entries fit into both the offset and
      the time index.
    Field `was_rebuilt`: whether the indexes were rebuilt since they were last flushed.
    Field `_is_checked`: whether offset and time index were compared with the log, or written by
      this object. Invariant: no caller sees an index before this is True.
    Field `_offset`, `_time`, `_txn`: None until first used: idle segments have no index objects.
    """

    __slots__ = (
        "_base_offset",
        "_directory",
        "_fs",
        "_is_checked",
        "_log",
        "_offset",
        "_suffix",
        "_time",
        "_txn",
        "config",
        "entries_left",
        "was_rebuilt",
    )

    def __init__(
        self,
        log: FileRecords,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        fs: FileSystem,
        suffix: str,
    ) -> None:
        self._log = log
        self._directory = directory
        self._base_offset = base_offset
        self._suffix = suffix
        self._fs = fs
        self.config = config
        self.entries_left = 0
        self.was_rebuilt = False
        self._is_checked = False
        self._offset: OffsetIndex | None = None
        self._time: TimeIndex | None = None
        self._txn: TransactionIndex | None = None

    def create(self) -> None:
        """Create the offset and time index of a new, empty segment, replacing existing ones."""
        self._is_checked = True
        self.offset.create()
        self.time.create()

    def _path(self, kind: str) -> Path:
        return offset_file(self._directory, self._base_offset, kind, self._suffix)

    # --- parts ---------------------------------------------------------------------------------

    @property
    def offset(self) -> OffsetIndex:
        """The offset index, checked against the log."""
        if self._offset is None:
            max_bytes = self.config.segment_index_bytes
            self._offset = OffsetIndex(
                self._path(OFFSET_INDEX), self._base_offset, max_bytes, self._fs
            )
        if not self._is_checked:
            self._check()
        return self._offset

    @property
    def time(self) -> TimeIndex:
        """The time index, checked against the log."""
        if self._time is None:
            max_bytes = self.config.segment_index_bytes
            self._time = TimeIndex(self._path(TIME_INDEX), self._base_offset, max_bytes, self._fs)
        if not self._is_checked:
            self._check()
        return self._time

    @property
    def txn(self) -> TransactionIndex:
        """The aborted transactions whose marker is in this segment."""
        if self._txn is None:
            self._txn = TransactionIndex(self._path(TXN_INDEX), self._fs)
        return self._txn

    # --- checking and rebuilding ---------------------------------------------------------------

    def _check(self) -> None:
        """Check the ends of both indexes, once, and rebuild both if one does not match the log.

        The segment has cached nothing from them at this point: every caller comes through here.
        """
        self._is_checked = True
        problem = describe_index_problem(
            self._log, self.offset, self.time, self.config.index_interval_bytes
        )
        if problem:
            logger.warning("rebuilding indexes segment=%s: %s", self._log.path, problem)
            self.rebuild(self._log.headers())

    def describe_time_entry_problem(self, entry: TimestampOffset) -> str:
        """What is wrong with an entry of the time index; an empty string if nothing is."""
        if entry == (NO_TIMESTAMP, self._base_offset):
            return ""  # stands for "before the first entry"
        return describe_time_entry_problem(self._log, self.offset, entry)

    def rebuild(self, headers: Iterable[tuple[int, BatchHeader]]) -> TimestampOffset:
        """Rebuild offset and time index from `headers` (position, header); the largest timestamp.

        The entries are those that single appends of the batches would have made. The time index
        ends with the largest timestamp and both files are trimmed, as after a roll.
        """
        self._is_checked = self.was_rebuilt = True
        self.entries_left = 0
        offset_index, time_index = self.offset, self.time
        offset_index.reset()
        time_index.reset()
        interval_bytes = self.config.index_interval_bytes
        largest = TimestampOffset(NO_TIMESTAMP, self._base_offset)
        indexed_position = 0
        for position, header in headers:
            if header.max_timestamp > largest.timestamp:
                largest = TimestampOffset(header.max_timestamp, header.last_offset)
            if position - indexed_position > interval_bytes:
                offset_index.append(header.last_offset, position)
                time_index.maybe_append(*largest)
                indexed_position = position
        self.trim(largest)
        return largest

    # --- changing ------------------------------------------------------------------------------

    def append(self, offset: int, position: int, largest: TimestampOffset) -> None:
        """Add an entry to both indexes; after an OSError neither has one."""
        offset_index, time_index = self.offset, self.time
        offset_index.append(offset, position)
        try:
            time_index.maybe_append(*largest)
        except OSError:
            offset_index.truncate_to(offset)
            raise
        self.entries_left -= 1

    def count_entries_left(self) -> int:
        """Count how many more entries both indexes can hold; called when that may be none."""
        self.entries_left = min(self.offset.entries_left, self.time.entries_left)
        return self.entries_left

    def truncate_to(self, offset: int) -> None:
        """Remove what the three indexes hold for `offset` and above."""
        self.offset.truncate_to(offset)
        self.time.truncate_to(offset)
        self.txn.truncate_to(offset)
        self.entries_left = 0

    def trim(self, largest: TimestampOffset) -> None:
        """Write the segment's largest timestamp as last time entry and cut both files to size."""
        self.time.maybe_append(*largest)
        self.offset.trim()
        self.time.trim()

    # --- files ---------------------------------------------------------------------------------

    def finish(self, largest: TimestampOffset) -> None:
        """Trim both indexes when the log rolls, and release their descriptors."""
        self.trim(largest)
        self.offset.release()
        self.time.release()

    def open_files(self) -> list[OpenFile]:
        """The files of all indexes, for a caller that flushes them."""
        files = [self.offset.open_file(), self.time.open_file()]
        aborted = self.txn.open_file()
        return files if aborted is None else [*files, aborted]

    def close(self, largest: TimestampOffset | None) -> None:
        """Finish the files for a clean shutdown; indexes that were not used are not touched."""
        if self._time is not None and largest is not None:
            self._time.maybe_append(*largest)
        for index in (self._offset, self._time):
            if index is not None:
                index.close()

    def release(self) -> None:
        """Release all descriptors; the next use opens the files again."""
        for index in (self._offset, self._time, self._txn):
            if index is not None:
                index.release()

    def change_paths(self, directory: Path, suffix: str) -> None:
        """Follow the files, which the segment has renamed."""
        self._directory, self._suffix = directory, suffix
        if self._offset is not None:
            self._offset.path = self._path(OFFSET_INDEX)
        if self._time is not None:
            self._time.path = self._path(TIME_INDEX)
        if self._txn is not None:
            self._txn.path = self._path(TXN_INDEX)
