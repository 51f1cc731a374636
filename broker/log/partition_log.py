"""The log of one partition: segments, producers and epochs under one roof (Kafka's UnifiedLog).

    log start offset ≤ last stable offset ≤ high watermark ≤ log end offset

Rules that hold everything together:
 1. Everything is checked before the first byte is written; what fails leaves no trace in memory.
 2. A write goes to the page cache and is not flushed; `recovery_point` is what is surely on disk.
 3. An OSError takes the whole log directory offline (`environment.on_failure`): half-written bytes
    were cut or will be by recovery, and nothing more is acknowledged from a disk that lies.
 4. Files leave in two steps: renamed to `.deleted` at once, removed `file.delete.delay.ms` later.

One lock guards all changes and lookups, because the cleaner, the flusher and retention run in
threads beside the event loop. No flush happens under it, unless `flush.messages` asks for one.
Loading is the business of `recovery`, compaction that of `cleaner`, retention that of `retention`.
"""

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from broker.errors import ApiError, ErrorCode, OffsetOutOfRange
from broker.log.append import (
    AppendOrigin,
    LeaderStamp,
    LogAppendInfo,
    Prepared,
    analyze,
    prepare_as_follower,
    prepare_as_leader,
)
from broker.log.checkpoints import write_partition_metadata
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.layout import DELETED, FUTURE_DIR, SEGMENT_FILES, SWAP
from broker.log.leader_epochs import UNDEFINED_EPOCH_OFFSET, LeaderEpochs
from broker.log.offsets import UNKNOWN_POSITION, FetchData, FetchIsolation, LogOffsetMetadata
from broker.log.producer_entry import ProducerEntry
from broker.log.producer_replay import rebuild_producer_state
from broker.log.producer_state import ProducerState, Verification
from broker.log.segment import LogSegment
from broker.log.segments import LogSegments
from broker.log.transaction_index import AbortedTxn
from broker.model import TopicPartition, Uuid
from broker.records.layout import CURRENT_MAGIC, MAX_INT32, NO_TIMESTAMP, BytesLike

logger = logging.getLogger(__name__)


class LoadedLog(NamedTuple):
    """What loading a partition's directory found (see `recovery`)."""

    segments: LogSegments
    producer_state: ProducerState
    leader_epochs: LeaderEpochs
    log_start_offset: int
    recovery_point: int
    log_end_offset: int
    topic_id: Uuid | None


class PartitionLog:
    """One partition's log.

    Field `_log_end`: offset and place of the next append. Invariant: the active segment's end.
    Field `high_watermark`: what the replicas agreed on. Invariant: start ≤ high watermark ≤ end.
    Field `recovery_point`: Invariant: every batch below it is on the medium.
    Field `_pending_deletes`: (when, file names) of what was renamed to `.deleted`.
    Field `_flush_wanted`: a roll happened: flush up to this offset at the next occasion.
    Field `_resolved`: the last offset whose place was looked up; None after every change of files.
    """

    def __init__(
        self,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        environment: LogEnvironment,
        loaded: LoadedLog,
    ) -> None:
        self.directory = directory
        self.partition = partition
        self.config = config
        self._env = environment
        self._lock = threading.RLock()
        self.segments = loaded.segments
        self.producer_state = loaded.producer_state
        self.leader_epochs = loaded.leader_epochs
        self.topic_id = loaded.topic_id
        self.log_start_offset = loaded.log_start_offset
        self.recovery_point = max(loaded.recovery_point, loaded.log_start_offset)
        self.high_watermark = loaded.log_start_offset
        active = loaded.segments.active
        self._log_end = LogOffsetMetadata(loaded.log_end_offset, active.base_offset, active.size)
        self._resolved: LogOffsetMetadata | None = None
        self._flush_wanted = 0
        self._pending_deletes: list[tuple[int, list[str]]] = []
        self._is_offline = False
        self.last_flush_ms = environment.clock.now_ms()

    # --- facts ---------------------------------------------------------------------------------

    @property
    def log_end_offset(self) -> int:
        """The offset the next record gets."""
        return self._log_end.offset

    @property
    def log_dir(self) -> Path:
        """The log directory that the partition's directory lies in."""
        return self.directory.parent

    @property
    def is_future(self) -> bool:
        """Whether this is a replica on its way to another log directory."""
        return self.directory.name.endswith(FUTURE_DIR)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return self.segments.size_in_bytes

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset that a transaction without replicated end may have written."""
        first = self.producer_state.first_unstable_offset()
        return None if first is None else max(first, self.log_start_offset)

    @property
    def last_stable_offset(self) -> int:
        """How far a read_committed consumer sees."""
        unstable = self.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return min(unstable, self.high_watermark)

    @property
    def active_producers(self) -> list[ProducerEntry]:
        """What is known of the producers (DescribeProducers)."""
        with self._lock:
            return list(self.producer_state.producers.values())

    @property
    def lock(self) -> AbstractContextManager[bool]:
        """What the cleaner and retention hold while they exchange segments."""
        return self._lock

    @property
    def environment(self) -> LogEnvironment:
        """Disk and clock of this log."""
        return self._env

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Write the topic's id beside the log; INCONSISTENT_TOPIC_ID if it has another."""
        if self.topic_id == topic_id:
            return
        if self.topic_id is not None:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.partition}: the log in {self.directory} is of topic id {self.topic_id}, "
                f"not {topic_id}",
            )
        with self.storing("write the topic id"):
            write_partition_metadata(self.directory, topic_id, self._env.fs)
        self.topic_id = topic_id

    def update_config(self, config: LogConfig) -> None:
        """Obey new settings from now on; a segment keeps its jitter."""
        with self._lock:
            self.config = config
            for segment in self.segments:
                segment.config = config

    def remove_expired_producers(self) -> None:
        """Forget producers that wrote nothing for long."""
        with self._lock:
            self.producer_state.remove_expired(self._env.clock.now_ms())

    # --- failures ------------------------------------------------------------------------------

    @contextmanager
    def storing(self, action: str) -> Iterator[None]:
        """Turn an OSError inside into KAFKA_STORAGE_ERROR, and the log directory offline."""
        self._check_online()
        try:
            yield
        except OSError as error:
            raise self._failed(action, error) from error

    def _failed(self, action: str, error: OSError) -> ApiError:
        self._is_offline = True
        logger.error("could not %s partition=%s: %s", action, self.partition, error)
        self._env.on_failure(self.log_dir, error)
        return ApiError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: could not {action}: {error}"
        )

    def _check_online(self) -> None:
        if self._is_offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.partition}: the log is offline")

    def go_offline(self) -> None:
        """The directory failed elsewhere: touch nothing any more, give the descriptors back.

        Takes no lock: who reports the failure may hold that of another log.
        """
        self._is_offline = True
        for segment in self.segments:
            segment.release()

    # --- appending -----------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: BytesLike,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification: Verification | None = None,
    ) -> LogAppendInfo:
        """Check, stamp and write one batch (or an old message set, as one batch).

        A retry of one of the producer's last five batches is answered with their offsets and
        writes nothing. ApiError says why a batch was refused; then nothing has changed.
        """
        batches = analyze(records, self.config.max_message_bytes, origin)
        with self._lock:
            if not batches:
                return self._nothing_appended()
            self._check_online()
            stamp = LeaderStamp(self._log_end.offset, leader_epoch, self._env.clock.now_ms())
            prepared = prepare_as_leader(batches, stamp, self.config, origin)
            return self._append(prepared, origin, verification)

    def append_as_follower(self, records: BytesLike) -> LogAppendInfo:
        """Write the leader's batches as they are, offsets and epochs included."""
        batches = analyze(records, MAX_INT32, AppendOrigin.REPLICATION)
        with self._lock:
            if not batches:
                return self._nothing_appended()
            self._check_online()
            prepared = prepare_as_follower(batches, records, self._log_end.offset)
            return self._append(prepared, AppendOrigin.REPLICATION, None)

    def _nothing_appended(self) -> LogAppendInfo:
        return LogAppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, self.log_start_offset, 0)

    def _append(
        self, prepared: Prepared, origin: AppendOrigin, verification: Verification | None
    ) -> LogAppendInfo:
        if prepared.size > self.config.segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{prepared.size} bytes do not fit a segment of {self.config.segment_bytes}",
            )
        try:
            self._assign_epochs(prepared)
            segment = self._maybe_roll(prepared)
            duplicate = self._check_producer(prepared, origin, verification)
            if duplicate is not None:
                return duplicate
            segment.append(
                prepared.buffers, prepared.size, prepared.last_offset, prepared.max_timestamp
            )
            next_offset = prepared.last_offset + 1
            self._log_end = LogOffsetMetadata(next_offset, segment.base_offset, segment.log.size)
            self._note_producers(prepared, segment)
        except OSError as error:
            raise self._failed("append", error) from error
        if next_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        return LogAppendInfo(
            prepared.first_offset,
            prepared.last_offset,
            prepared.max_timestamp.timestamp,
            prepared.log_append_time,
            self.log_start_offset,
            prepared.size,
        )

    def _assign_epochs(self, prepared: Prepared) -> None:
        for _, header in prepared.batches:
            if header.magic == CURRENT_MAGIC:
                self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            elif self.leader_epochs.entries:
                # Old formats carry no epoch, so from here on the entries would lie.
                self.leader_epochs.clear()

    def _check_producer(
        self, prepared: Prepared, origin: AppendOrigin, verification: Verification | None
    ) -> LogAppendInfo | None:
        """Idempotence: the answer to a duplicate, an ApiError, or None to go on and write."""
        batch, header = prepared.batches[0]
        if origin is AppendOrigin.REPLICATION or not header.has_producer_id:
            return None
        is_client = origin is AppendOrigin.CLIENT
        if is_client and (written := self.producer_state.find_duplicate(header)) is not None:
            first, last, time = written.first_offset, written.last_offset, written.timestamp
            return LogAppendInfo(first, last, time, time, self.log_start_offset, 0)
        self.producer_state.check(batch, verification, is_client=is_client)
        return None

    def _note_producers(self, prepared: Prepared, segment: LogSegment) -> None:
        for batch, header in prepared.batches:
            if header.producer_id < 0:
                continue
            txn = self.producer_state.append(batch, header)
            aborted = self.producer_state.complete(txn) if txn is not None else None
            if aborted is not None:
                segment.txn_index.append(aborted)
        self.producer_state.map_end_offset = prepared.last_offset + 1

    def start_verification(
        self, producer_id: int, sequence: int, producer_epoch: int
    ) -> Verification | None:
        """The guard for a transaction's first append; None if its transaction is open already."""
        with self._lock:
            entry = self.producer_state.producers.get(producer_id)
            if entry is not None and entry.current_txn_first_offset is not None:
                return None
            now_ms = self._env.clock.now_ms()
            return self.producer_state.start_verification(
                producer_id, sequence, producer_epoch, now_ms
            )

    # --- rolling -------------------------------------------------------------------------------

    def _maybe_roll(self, prepared: Prepared) -> LogSegment:
        segment = self.segments.active
        now_ms = self._env.clock.now_ms()
        timestamp = prepared.max_timestamp.timestamp
        if not segment.should_roll(prepared.size, timestamp, prepared.last_offset, now_ms):
            return segment
        # The first offset inside an old compressed set is not known without opening it.
        is_old = prepared.batches[0][1].magic < CURRENT_MAGIC
        return self._roll(0 if is_old else prepared.first_offset)

    def roll(self) -> LogSegment:
        """Close the active segment and begin another at the log end offset."""
        with self._lock, self.storing("roll"):
            return self._roll(0)

    def _roll(self, expected_offset: int) -> LogSegment:
        new_offset = max(expected_offset, self.log_end_offset)
        active = self.segments.active
        if new_offset == active.base_offset:
            if active.size:
                raise ApiError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.partition}: {active} exists already"
                )
            # Full indexes and no data: begin the same segment afresh.
            self.segments.remove([active])
            active.delete()
        else:
            active.on_become_inactive()
        segment = self._add_segment(new_offset)
        self.producer_state.map_end_offset = new_offset
        self.producer_state.take_snapshot(sync=False)
        self._flush_wanted = new_offset
        logger.debug("rolled partition=%s base_offset=%s", self.partition, new_offset)
        return segment

    def _add_segment(self, base_offset: int) -> LogSegment:
        env = self._env
        segment = LogSegment(self.directory, base_offset, self.config, env.fs, env.clock)
        segment.create()
        self.segments.add(segment)
        self._log_end = LogOffsetMetadata(self._log_end.offset, base_offset, 0)
        self._resolved = None
        return segment

    # --- reading -------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        *,
        min_one_message: bool = False,
    ) -> FetchData:
        """Up to `max_bytes` from the batch that holds `offset`, as far as `isolation` lets see.

        The bytes begin with a whole batch, whose first records may lie before `offset`, and may end
        inside of one. With `min_one_message` the first batch comes whole, however large.
        OffsetOutOfRange below the log start offset and above the log end offset.
        """
        with self._lock:
            self._check_online()
            if not self.log_start_offset <= offset <= self._log_end.offset:
                raise OffsetOutOfRange(
                    f"{self.partition}: offset {offset} is not in "
                    f"[{self.log_start_offset}, {self._log_end.offset}]"
                )
            try:
                return self._read(offset, max_bytes, isolation, min_one_message)
            except OSError as error:
                raise self._failed("read", error) from error

    def _read(
        self, offset: int, max_bytes: int, isolation: FetchIsolation, min_one_message: bool
    ) -> FetchData:
        aborted: list[AbortedTxn] | None = None
        if isolation is FetchIsolation.TXN_COMMITTED:
            aborted = []
        end = self._visible_end(isolation)
        segment = self.segments.floor(offset)
        if offset >= end.offset or segment is None:
            place = end if offset == end.offset else self._place_of(offset)
            return FetchData(place, None, aborted_transactions=aborted)
        while segment is not None and segment.base_offset <= end.segment_base_offset:
            is_last = segment.base_offset == end.segment_base_offset
            max_position = end.position if is_last else segment.size
            found = segment.read(offset, max_bytes, max_position, min_one_message=min_one_message)
            if found is not None:
                place = LogOffsetMetadata(offset, segment.base_offset, found.position)
                if aborted is not None:
                    upper = self._upper_bound(segment, found.position + len(found.records))
                    aborted = self.collect_aborted_txns(offset, upper)
                return FetchData(place, found.records, found.first_entry_incomplete, aborted)
            segment = self.segments.higher(segment)
        # Compaction left nothing between `offset` and what may be seen.
        return FetchData(end, None, aborted_transactions=aborted)

    def _visible_end(self, isolation: FetchIsolation) -> LogOffsetMetadata:
        """Where `isolation` stops, with its place in the files."""
        if isolation is FetchIsolation.LOG_END:
            return self._log_end
        offset = self.high_watermark
        if isolation is FetchIsolation.TXN_COMMITTED:
            offset = self.last_stable_offset
        return self._place_of(offset)

    def _place_of(self, offset: int) -> LogOffsetMetadata:
        """Where the batch that holds `offset` begins, or would begin."""
        if offset >= self._log_end.offset:
            return self._log_end
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

    def _upper_bound(self, segment: LogSegment, position: int) -> int:
        """An offset that no record before `position` of the segment reaches."""
        offset = segment.offset_index.first_offset_beyond(position)
        if offset is not None:
            return offset
        higher = self.segments.higher(segment)
        return self._log_end.offset if higher is None else higher.base_offset

    def collect_aborted_txns(self, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """The aborted transactions that touch [start_offset, upper_bound)."""
        found: list[AbortedTxn] = []
        with self._lock:
            segment = self.segments.floor(start_offset)
            while segment is not None:
                txns, is_complete = segment.txn_index.collect(start_offset, upper_bound)
                found += txns
                segment = None if is_complete else self.segments.higher(segment)
        return found

    # --- watermarks ----------------------------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, kept between log start and end; what it became."""
        with self._lock:
            offset = min(max(offset, self.log_start_offset), self._log_end.offset)
            self.high_watermark = offset
            self.producer_state.on_high_watermark_updated(offset)
            return offset

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark to `offset` if that is higher; ValueError beyond the end."""
        with self._lock:
            if offset > self._log_end.offset:
                raise ValueError(f"{self.partition}: {offset} is above {self._log_end.offset}")
            if offset <= self.high_watermark:
                return False
            self.update_high_watermark(offset)
            return True

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Delete the records before `offset` (DeleteRecords, or a leader that did).

        Segments that end before it go at the next retention run. OffsetOutOfRange above the high
        watermark: what is not replicated cannot be deleted.
        """
        with self._lock:
            self._check_online()
            if offset > self.high_watermark:
                raise OffsetOutOfRange(
                    f"{self.partition}: cannot delete records up to {offset}, the high watermark "
                    f"is {self.high_watermark}"
                )
            if offset <= self.log_start_offset:
                return False
            self.log_start_offset = offset
            self.recovery_point = max(self.recovery_point, offset)
            self.leader_epochs.truncate_from_start(offset)
            self.producer_state.on_log_start_offset_incremented(offset)
            return True

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int] | None:
        """(epoch, end offset) of the largest epoch not above `leader_epoch`; None if unknown."""
        with self._lock:
            found = self.leader_epochs.end_offset_for(leader_epoch, self._log_end.offset)
        return None if found[1] == UNDEFINED_EPOCH_OFFSET else found

    # --- truncating ----------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Drop all records from `offset` on; False if there were none."""
        with self._lock, self.storing("truncate"):
            if offset >= self._log_end.offset:
                self.leader_epochs.truncate_from_end(self._log_end.offset)
                return False
            if self.segments.first.base_offset > offset:
                self._truncate_fully(offset, offset)
                return True
            self.delete_segments([s for s in self.segments if s.base_offset > offset])
            self.segments.active.truncate_to(offset)
            self._set_log_end(offset)
            self.leader_epochs.truncate_from_end(offset)
            self.log_start_offset = min(self.log_start_offset, offset)
            self._rebuild_producer_state(offset)
            self.update_high_watermark(self.high_watermark)
            return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop the whole log and go on at `offset` (a follower whose leader's log begins later)."""
        with self._lock, self.storing("truncate"):
            self._truncate_fully(offset, offset if log_start_offset is None else log_start_offset)

    def _truncate_fully(self, offset: int, log_start_offset: int) -> None:
        self.delete_segments(list(self.segments))
        self._add_segment(offset)
        self._set_log_end(offset)
        self.leader_epochs.clear()
        self.producer_state.truncate_fully_and_start_at(offset)
        self.log_start_offset = log_start_offset
        self._rebuild_producer_state(offset)
        self.update_high_watermark(offset)

    def _set_log_end(self, offset: int) -> None:
        active = self.segments.active
        self._log_end = LogOffsetMetadata(offset, active.base_offset, active.size)
        self._resolved = None
        self.recovery_point = min(self.recovery_point, offset)
        self._flush_wanted = min(self._flush_wanted, offset)

    def _rebuild_producer_state(self, offset: int) -> None:
        now_ms = self._env.clock.now_ms()
        rebuild_producer_state(
            self.producer_state, self.segments, self.log_start_offset, offset, now_ms
        )

    # --- deleting ------------------------------------------------------------------------------

    def delete_segments(self, segments: Iterable[LogSegment]) -> None:
        """Take segments out of the log: renamed to `.deleted` now, removed after the delay.

        The lock is held and OSErrors are the caller's to handle.
        """
        segments = list(segments)
        self.segments.remove(segments)
        self._retire(segments)
        kept = set(self.segments.base_offsets)
        gone = [s.base_offset for s in segments if s.base_offset not in kept]
        marked = self.producer_state.mark_snapshots_deleted(gone)
        self._delete_later([path.name for path in marked])

    def _retire(self, segments: Iterable[LogSegment]) -> None:
        for segment in segments:
            segment.release()
            segment.change_suffix(DELETED)
            self._delete_later([segment.path(kind).name for kind in SEGMENT_FILES])
        self._resolved = None

    def _delete_later(self, names: list[str]) -> None:
        if names:
            due_ms = self._env.clock.now_ms() + self.config.file_delete_delay_ms
            self._pending_deletes.append((due_ms, names))

    def delete_pending_files(self) -> None:
        """Remove the `.deleted` files whose delay is over."""
        now_ms = self._env.clock.now_ms()
        with self._lock:
            due = [names for due_ms, names in self._pending_deletes if due_ms <= now_ms]
            self._pending_deletes = [p for p in self._pending_deletes if p[0] > now_ms]
        if due:
            with self.storing("delete files"):
                for names in due:
                    for name in names:
                        self._env.fs.remove(self.directory / name)

    def replace_segments(self, cleaned: LogSegment, old: list[LogSegment]) -> None:
        """Put a cleaned segment in the place of those it was made of.

        Safe against a crash at every step: until all its files are `.swap`, loading drops them;
        from then on loading finishes the exchange.
        """
        with self._lock, self.storing("replace segments"):
            cleaned.change_suffix(SWAP)
            self.segments.remove(old)
            self.segments.add(cleaned)
            self._retire(old)
            cleaned.change_suffix("")
            self._env.fs.sync_directory(self.directory)
            gone = [s.base_offset for s in old if s.base_offset != cleaned.base_offset]
            marked = self.producer_state.mark_snapshots_deleted(gone)
            self._delete_later([path.name for path in marked])

    # --- flushing, closing ---------------------------------------------------------------------

    def flush(self, *, include_active: bool = False) -> None:
        """Bring everything up to the log end offset to the medium.

        `include_active` also flushes an active segment that got nothing since it was rolled.
        """
        self._flush_to(self.log_end_offset, include_active=include_active)

    def maybe_flush(self) -> None:
        """Flush what a roll left behind, or everything if `flush.ms` is over."""
        if self._env.clock.now_ms() - self.last_flush_ms >= self.config.flush_ms:
            self.flush()
        elif self._flush_wanted > self.recovery_point:
            self._flush_to(self._flush_wanted, include_active=False)

    def _flush_to(self, offset: int, *, include_active: bool) -> None:
        with self._lock, self.storing("flush"):
            upper = offset + 1 if include_active else offset
            if upper <= self.recovery_point:
                return
            start = self.recovery_point
            segments = self.segments.between(start, upper)
        with self.storing("flush"):
            for segment in segments:
                segment.flush()
            if any(segment.base_offset >= start for segment in segments):
                self._env.fs.sync_directory(self.directory)
        with self._lock:
            if offset > self.recovery_point and offset <= self._log_end.offset:
                self.recovery_point = offset
                self.last_flush_ms = self._env.clock.now_ms()

    def release_idle_files(self) -> None:
        """Give back the descriptors of segments that were not read since the last call."""
        with self._lock:
            for segment in self.segments:
                if segment is not self.segments.active and not segment.was_used:
                    segment.release()
                segment.was_used = False

    def close(self) -> None:
        """Leave the directory as a clean stop leaves it; the log takes nothing any more."""
        with self._lock, self.storing("close"):
            self.producer_state.take_snapshot()
            self.leader_epochs.flush()
            for segment in self.segments:
                segment.close()
            self._is_offline = True

    def rename_directory(self, name: str) -> None:
        """Move the log to another directory beside this one (`-delete`, `-future` and back)."""
        with self._lock, self.storing("rename the directory"):
            target = self.directory.with_name(name)
            self._env.fs.rename(self.directory, target)
            self._env.fs.sync_directory(target.parent)
            self.directory = self.producer_state.directory = target
            self.leader_epochs.path = target / self.leader_epochs.path.name
            for segment in self.segments:
                segment.change_directory(target)

    def delete(self) -> None:
        """Remove the directory with everything in it."""
        with self._lock, self.storing("delete"):
            for segment in self.segments:
                segment.release()
            self._env.fs.remove_directory(self.directory)
            self._is_offline = True
