"""The segments of one log, as files: appended to, read, rolled, deleted, flushed.

Knows nothing of producers, epochs and watermarks; `PartitionLog` above it does, and holds the lock
for everything here. OSErrors pass through.
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
from broker.log.segment import LogSegment
from broker.log.segments import LogSegments
from broker.log.transaction_index import AbortedTxn

logger = logging.getLogger(__name__)


class LocalLog:
    """The files of one log.

    Field `log_end_offset`: that of the next record. Invariant: it belongs to the active segment.
    Field `recovery_point`: Invariant: every batch below it is on the medium.
    Field `truncations`: how often the log was cut; what was flushed before a cut proves nothing.
    Field `_pending_deletes`: (when, file names) of what was renamed to `.deleted`.
    Field `_resolved`: the last offset whose place was looked up; None after every change of files.
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
        self.truncations = 0
        self._env = environment
        self._resolved: LogOffsetMetadata | None = None
        self._pending_deletes: list[tuple[int, list[str]]] = []

    # --- appending and rolling -------------------------------------------------------------------

    def append(self, prepared: Prepared) -> LogSegment:
        """Write to the active segment, and give it back; after an OSError nothing has changed."""
        segment = self.segments.active
        segment.append(prepared.buffers, prepared.size, prepared.headers)
        self.log_end_offset = prepared.last_offset + 1
        return segment

    @property
    def log_end(self) -> LogOffsetMetadata:
        """Offset and place of the next append."""
        active = self.segments.active
        return LogOffsetMetadata(self.log_end_offset, active.base_offset, active.size)

    def roll(self, expected_offset: int) -> LogSegment:
        """Begin a new segment at the log end offset, or at `expected_offset` if that is higher."""
        new_offset = max(expected_offset, self.log_end_offset)
        active = self.segments.active
        if new_offset != active.base_offset:
            active.on_become_inactive()
        elif active.size:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.directory}: {active} exists already"
            )
        else:  # no data: begin the same segment afresh
            self.segments.remove([active])
            active.delete()
        return self.add_segment(new_offset)

    def add_segment(self, base_offset: int) -> LogSegment:
        """Make a new segment the active one."""
        env = self._env
        segment = LogSegment(self.directory, base_offset, self.config, env.fs, env.clock)
        segment.create()
        self.segments.add(segment)
        self._resolved = None
        return segment

    def set_log_end(self, offset: int) -> None:
        """The log was cut: it ends with the active segment, at `offset`."""
        self.log_end_offset = offset
        self._resolved = None
        self.recovery_point = min(self.recovery_point, offset)
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
                return self._with_aborted_txns(found, offset, segment) if wants_aborted else found
            segment = self.segments.higher(segment)
        # The end, or compaction left nothing between `offset` and what may be seen.
        return FetchData(None, aborted_transactions=[] if wants_aborted else None)

    def _with_aborted_txns(self, found: FetchData, offset: int, segment: LogSegment) -> FetchData:
        aborted: list[AbortedTxn] = []
        if found.records is not None and self._has_aborted_txns_from(segment):
            upper = self._upper_bound(segment, found.records.position + len(found.records))
            aborted = self.collect_aborted_txns(offset, upper)
        return FetchData(found.records, found.first_entry_incomplete, aborted)

    def place_of(self, offset: int) -> LogOffsetMetadata:
        """Where the batch that holds `offset` begins, or would begin."""
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
        """Whether this segment or a later one names any, which few do and all fetches ask."""
        while segment is not None:
            if segment.txn_index.exists:
                return True
            segment = self.segments.higher(segment)
        return False

    def _upper_bound(self, segment: LogSegment, position: int) -> int:
        """An offset that no record before `position` of the segment reaches."""
        offset = segment.offset_index.first_offset_beyond(position)
        if offset is not None:
            return offset
        higher = self.segments.higher(segment)
        return self.log_end_offset if higher is None else higher.base_offset

    def collect_aborted_txns(self, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """The aborted transactions that touch [start_offset, upper_bound)."""
        found: list[AbortedTxn] = []
        segment = self.segments.floor(start_offset)
        while segment is not None:
            txns, is_complete = segment.txn_index.collect(start_offset, upper_bound)
            found += txns
            segment = None if is_complete else self.segments.higher(segment)
        return found

    # --- deleting --------------------------------------------------------------------------------

    def delete_segments(self, segments: Iterable[LogSegment]) -> None:
        """Take segments out of the log: renamed to `.deleted` now, removed after the delay."""
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
        """The files whose delay is over; the caller removes them."""
        now_ms = self._env.clock.now_ms()
        due = [names for due_ms, names in self._pending_deletes if due_ms <= now_ms]
        self._pending_deletes = [p for p in self._pending_deletes if p[0] > now_ms]
        return [self.directory / name for names in due for name in names]

    def replace_segments(self, cleaned: LogSegment, old: list[LogSegment]) -> None:
        """Put a cleaned segment in the place of those it was made of.

        Safe against a crash at every step: until all its files are `.swap`, loading drops them;
        from then on loading finishes the exchange.
        """
        cleaned.change_suffix(SWAP)
        self.segments.remove(old)
        self.segments.add(cleaned)
        self._retire(old)
        cleaned.change_suffix("")
        self._env.fs.sync_directory(self.directory)

    # --- flushing, closing -----------------------------------------------------------------------

    def take_unflushed(self, offset: int) -> list[OpenFile]:
        """The files with batches below `offset` that may not be on the medium, to be flushed."""
        if offset <= self.recovery_point:
            return []
        segments = self.segments.between(self.recovery_point, offset)
        return [file for segment in segments for file in segment.take_unflushed()]

    def mark_flushed(self, offset: int) -> None:
        """Everything below `offset` is on the medium."""
        self.recovery_point = max(self.recovery_point, offset)

    def release_idle_files(self) -> None:
        """Give back the descriptors of segments that were not used since the last call."""
        for segment in self.segments:
            if not segment.was_used:
                segment.release()
            segment.was_used = False

    def close(self) -> None:
        """Leave every segment as a clean stop leaves it."""
        for segment in self.segments:
            segment.close()

    def rename_directory(self, target: Path) -> None:
        """Move the whole directory."""
        self._env.fs.rename(self.directory, target)
        self._env.fs.sync_directory(target.parent)
        self.directory = target
        for segment in self.segments:
            segment.change_directory(target)

    def update_config(self, config: LogConfig) -> None:
        """Obey new settings from now on; a segment keeps its jitter."""
        self.config = config
        for segment in self.segments:
            segment.config = config
