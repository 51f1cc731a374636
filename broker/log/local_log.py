"""The segments of one log and their files: append, read, roll, delete, flush (Kafka's LocalLog).

Producers, epochs and watermarks are in `PartitionLog`, which also holds the lock for everything
here and handles OSErrors.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from broker.errors import ApiError, ErrorCode
from broker.log.append import Prepared
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.files import OpenFile
from broker.log.layout import DELETED, SEGMENT_FILES, SWAP
from broker.log.offsets import UNKNOWN_POSITION, FetchData, LogOffsetMetadata
from broker.log.segment import LogSegment, indexed_batches
from broker.log.segments import LogSegments
from broker.log.transaction_index import AbortedTxn

logger = logging.getLogger(__name__)


class LocalLog:
    """The files of one log.

    Field `log_end_offset`: that of the next record. Invariant: it belongs to the active segment.
    Field `recovery_point`: Invariant: every batch below it is flushed.
    Field `flushed_end_offset`: the log end offset of the last group commit (`flush.messages`), or
      at loading. Invariant: after a group commit, every batch between the recovery point and it is
      on the medium, but perhaps not its index entries.
    Field `_synced_segment`: the base offset of the newest segment whose directory entry a group
      commit has flushed; -1 before the first one.
    Field `rolled_at`: the base offset of the last roll; everything below it must be flushed soon.
    Field `truncations`: how often the log was truncated. A flush that overlaps a truncation must
      not raise the recovery point.
    Field `_pending_deletes`: (due time, names) of the files that were renamed to `.deleted`.
    Field `_resolved`: the last offset whose position was looked up; None after every change of
      files.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        environment: LogEnvironment,
        segments: LogSegments,
        log_end_offset: int,
        recovery_point: int,
    ) -> None:
        self.directory = directory
        self.config = config
        self.segments = segments
        self.recovery_point = recovery_point
        self.log_end_offset = log_end_offset
        self.flushed_end_offset = log_end_offset
        self._synced_segment = -1
        self.rolled_at = 0
        self.truncations = 0
        self._env = environment
        self._resolved: LogOffsetMetadata | None = None
        self._pending_deletes: list[tuple[int, list[str]]] = []

    # --- appending and rolling -------------------------------------------------------------------

    def append(self, prepared: Prepared) -> LogSegment:
        """Write to the active segment and return it; after an OSError nothing has changed."""
        segment = self.segments.active
        segment.append(prepared.buffers, prepared.size, indexed_batches(prepared.headers))
        self.log_end_offset = prepared.last_offset + 1
        return segment

    @property
    def log_end(self) -> LogOffsetMetadata:
        """Offset and position of the next append."""
        active = self.segments.active
        return LogOffsetMetadata(self.log_end_offset, active.base_offset, active.size)

    def roll(self, expected_offset: int) -> LogSegment:
        """Start a new segment at the log end offset, or at `expected_offset` if that is higher."""
        new_offset = max(expected_offset, self.log_end_offset)
        active = self.segments.active
        if new_offset != active.base_offset:
            active.on_become_inactive()
        elif active.size:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.directory}: {active} exists already"
            )
        else:  # no data: create the same segment again
            self.segments.remove([active])
            active.delete()
        segment = self.add_segment(new_offset)
        self.rolled_at = new_offset
        return segment

    def add_segment(self, base_offset: int) -> LogSegment:
        """Make a new segment the active one."""
        env = self._env
        segment = LogSegment(self.directory, base_offset, self.config, env.fs, env.clock)
        segment.create()
        self.segments.add(segment)
        self._resolved = None
        return segment

    def set_log_end(self, offset: int) -> None:
        """Set the log end after a truncation: the active segment ends at `offset`."""
        self.log_end_offset = offset
        self._resolved = None
        self.recovery_point = min(self.recovery_point, offset)
        self.flushed_end_offset = min(self.flushed_end_offset, offset)
        self._synced_segment = -1  # a segment may be created again
        self.rolled_at = min(self.rolled_at, offset)
        self.truncations += 1

    # --- reading ---------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        end: LogOffsetMetadata,
        *,
        min_one_message: bool,
        wants_aborted: bool,
    ) -> FetchData:
        """Up to `max_bytes` from the batch that holds `offset`, never beyond `end`."""
        segment = self.segments.floor(offset) if offset < end.offset else None
        while segment is not None and segment.base_offset <= end.segment_base_offset:
            is_last = segment.base_offset == end.segment_base_offset
            max_position = end.position if is_last else segment.size
            found = segment.read(offset, max_bytes, max_position, min_one_message=min_one_message)
            if found is not None:
                if wants_aborted:
                    return self._with_aborted_txns(found, offset, segment, not is_last)
                return found if is_last else found._replace(is_off_end_segment=True)
            segment = self.segments.higher(segment)
        # The end, or compaction removed everything between `offset` and the visible end.
        return FetchData(None, False, [] if wants_aborted else None, offset > end.offset)

    def _with_aborted_txns(
        self, found: FetchData, offset: int, segment: LogSegment, is_off_end_segment: bool
    ) -> FetchData:
        aborted: list[AbortedTxn] = []
        if found.records is not None and self._has_aborted_txns_from(segment):
            upper = self._upper_bound(segment, found.records.position + len(found.records))
            aborted = self.collect_aborted_txns(offset, upper)
        return FetchData(found.records, found.first_entry_incomplete, aborted, is_off_end_segment)

    def place_of(self, offset: int) -> LogOffsetMetadata:
        """The position of the batch that holds `offset`, or would hold it."""
        if offset >= self.log_end_offset:
            return self.log_end
        if self._resolved is not None and self._resolved.offset == offset:
            return self._resolved
        segment = self.segments.floor(offset)
        place = LogOffsetMetadata(offset, self.segments.first.base_offset, UNKNOWN_POSITION)
        while segment is not None:
            found = segment.find_batch(offset)
            if found is not None:
                place = LogOffsetMetadata(offset, segment.base_offset, found.position)
                break
            segment = self.segments.higher(segment)
        self._resolved = place
        return place

    def _has_aborted_txns_from(self, segment: LogSegment | None) -> bool:
        """Whether this segment or a later one has a transaction index; every fetch checks this."""
        while segment is not None:
            if segment.indexes.txn.exists:
                return True
            segment = self.segments.higher(segment)
        return False

    def _upper_bound(self, segment: LogSegment, position: int) -> int:
        """An offset above all records before `position` of the segment."""
        offset = segment.indexes.offset.first_offset_beyond(position)
        if offset is not None:
            return offset
        higher = self.segments.higher(segment)
        return self.log_end_offset if higher is None else higher.base_offset

    def collect_aborted_txns(self, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """The aborted transactions that overlap [start_offset, upper_bound)."""
        found: list[AbortedTxn] = []
        segment = self.segments.floor(start_offset)
        while segment is not None:
            txns, is_complete = segment.indexes.txn.collect(start_offset, upper_bound)
            found += txns
            segment = None if is_complete else self.segments.higher(segment)
        return found

    # --- deleting --------------------------------------------------------------------------------

    def delete_segments(self, segments: Iterable[LogSegment]) -> None:
        """Delete segments: the files are renamed to `.deleted` now, removed after the delay."""
        segments = list(segments)
        self.segments.remove(segments)
        self._retire(segments)

    def _retire(self, segments: Iterable[LogSegment]) -> None:
        for segment in segments:
            segment.release()
            segment.change_suffix(DELETED)
            self.delete_later(segment.path(kind) for kind in SEGMENT_FILES)
        self._resolved = None

    def delete_later(self, paths: Iterable[Path]) -> None:
        """Remove files of this directory after `file.delete.delay.ms`."""
        due_ms = self._env.clock.now_ms() + self.config.file_delete_delay_ms
        self._pending_deletes.append((due_ms, [path.name for path in paths]))

    def take_due_deletes(self) -> list[Path]:
        """The files whose delay has passed; the caller removes them."""
        now_ms = self._env.clock.now_ms()
        due = [names for due_ms, names in self._pending_deletes if due_ms <= now_ms]
        self._pending_deletes = [p for p in self._pending_deletes if p[0] > now_ms]
        return [self.directory / name for names in due for name in names]

    def replace_segments(self, cleaned: LogSegment, old: list[LogSegment]) -> None:
        """Replace segments by the cleaned one made of them.

        Safe against a crash at every step: until all its files are `.swap`, loading removes them;
        from then on loading completes the swap.
        """
        cleaned.change_suffix(SWAP)
        self.segments.remove(old)
        self.segments.add(cleaned)
        self._retire(old)
        cleaned.change_suffix("")
        self._env.fs.sync_directory(self.directory)

    # --- flushing, closing -----------------------------------------------------------------------

    def take_unflushed(self, offset: int) -> list[OpenFile]:
        """The files with unflushed batches below `offset`; the caller flushes them."""
        if offset <= self.recovery_point:
            return []
        segments = self.segments.between(self.recovery_point, offset)
        return [file for segment in segments for file in segment.take_unflushed()]

    def take_unflushed_batches(self) -> tuple[list[OpenFile], bool]:
        """The files with batches since the last group commit, and whether to flush the directory.

        Only `.log` files: what recovery needs to keep every batch. It rebuilds the indexes, because
        the recovery point does not move.
        """
        start = max(self.flushed_end_offset, self.recovery_point)
        segments = self.segments.between(start, self.log_end_offset)
        newest = self.segments.active.base_offset
        has_new_files, self._synced_segment = newest != self._synced_segment, newest
        return [segment.log.open_file() for segment in segments], has_new_files

    def mark_flushed(self, offset: int) -> None:
        """Raise the recovery point to `offset`: everything below is flushed."""
        self.recovery_point = max(self.recovery_point, offset)

    def release_idle_files(self) -> None:
        """Release the descriptors of segments that were not used since the last call."""
        self.release_unused_files()
        for segment in self.segments:
            segment.was_used = False

    def release_unused_files(self) -> None:
        """Release the descriptors of segments without `was_used`."""
        for segment in self.segments:
            if not segment.was_used:
                segment.release()

    def release_files(self) -> None:
        """Release the descriptors of all segments."""
        for segment in self.segments:
            segment.release()

    def close(self) -> None:
        """Finish the files of every segment for a clean shutdown."""
        for segment in self.segments:
            segment.close()

    def rename_directory(self, target: Path) -> None:
        """Rename the directory."""
        self._env.fs.rename(self.directory, target)
        self._env.fs.sync_directory(target.parent)
        self.directory = target
        for segment in self.segments:
            segment.change_directory(target)

    def update_config(self, config: LogConfig) -> None:
        """Apply new settings."""
        self.config = config
        for segment in self.segments:
            segment.update_config(config)
