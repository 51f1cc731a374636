"""The log of one partition: files, producers and epochs under one roof (Kafka's UnifiedLog).

    log start offset ≤ last stable offset ≤ high watermark ≤ log end offset

Rules that hold everything together:
 1. Everything is checked before the first byte is written; what fails leaves no trace in memory.
 2. A write goes to the page cache and is not flushed; `recovery_point` is what is surely on disk.
 3. An OSError takes the whole log directory offline (`environment.on_failure`): half-written bytes
    were cut or will be by recovery, and nothing more is acknowledged from a disk that lies.
 4. Files leave in two steps: renamed to `.deleted` at once, removed `file.delete.delay.ms` later.

One lock guards all changes and lookups, because the cleaner, the flusher and retention run in
threads beside the event loop. No flush happens under it, unless `flush.messages` asks for one.
Files are the business of `LocalLog`, appending that of `LogWriter`, loading that of `recovery`,
compaction that of `cleaner`, forgetting that of `retention`, times that of `offset_lookup`.
"""

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from broker.errors import ApiError, ErrorCode, OffsetOutOfRange
from broker.log.append import (
    CLIENT,
    REPLICATION,
    AppendOrigin,
    LeaderStamp,
    LogAppendInfo,
    Prepared,
    analyze,
    prepare_as_follower,
    prepare_as_leader,
    read_plain_header,
)
from broker.log.checkpoints import write_partition_metadata
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.layout import FUTURE_DIR
from broker.log.leader_epochs import UNDEFINED_EPOCH_OFFSET, LeaderEpochs
from broker.log.local_log import LocalLog
from broker.log.offsets import (
    LOG_END,
    TXN_COMMITTED,
    FetchData,
    FetchIsolation,
    LogOffsetMetadata,
)
from broker.log.producer_entry import ProducerEntry
from broker.log.producer_replay import rebuild_producer_state
from broker.log.producer_state import ProducerState, Verification
from broker.log.segment import LogSegment
from broker.log.segments import LogSegments
from broker.log.transaction_index import AbortedTxn
from broker.log.writer import LogWriter
from broker.model import TopicPartition, Uuid
from broker.records.layout import (
    MAX_INT32,
    NO_TIMESTAMP,
    BytesLike,
)

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

    Field `high_watermark`: what the replicas agreed on. Invariant: start ≤ high watermark ≤ end.
    """

    def __init__(
        self,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        environment: LogEnvironment,
        loaded: LoadedLog,
    ) -> None:
        self.partition = partition
        self.environment = environment
        self._lock = threading.RLock()
        point = max(loaded.recovery_point, loaded.log_start_offset)
        self._local = LocalLog(
            directory, config, environment, loaded.segments, loaded.log_end_offset, point
        )
        self.producer_state = loaded.producer_state
        self.leader_epochs = loaded.leader_epochs
        self._writer = LogWriter(self._local, self.producer_state, self.leader_epochs)
        self.topic_id = loaded.topic_id
        self.log_start_offset = loaded.log_start_offset
        self.high_watermark = loaded.log_start_offset
        self.last_flush_ms = environment.clock.now_ms()
        self._is_offline = False

    # --- facts -----------------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        """Where the files are."""
        return self._local.directory

    @property
    def log_dir(self) -> Path:
        """The log directory that the partition's directory lies in."""
        return self._local.directory.parent

    @property
    def is_future(self) -> bool:
        """Whether this is a replica on its way to another log directory."""
        return self._local.directory.name.endswith(FUTURE_DIR)

    @property
    def config(self) -> LogConfig:
        """The settings it obeys."""
        return self._local.config

    @property
    def segments(self) -> LogSegments:
        """Its segments; hold the lock to change them."""
        return self._local.segments

    @property
    def log_end_offset(self) -> int:
        """The offset the next record gets."""
        return self._local.log_end_offset

    @property
    def recovery_point(self) -> int:
        """Everything below is on the medium."""
        return self._local.recovery_point

    @property
    def size_in_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return self._local.segments.size_in_bytes

    @property
    def last_stable_offset(self) -> int:
        """How far a read_committed consumer sees."""
        unstable = self.producer_state.first_unstable_offset()
        if unstable is None:  # as it is nearly always, and every fetch asks
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    @property
    def active_producers(self) -> list[ProducerEntry]:
        """What is known of the producers (DescribeProducers)."""
        with self._lock:
            return list(self.producer_state.producers.values())

    @property
    def lock(self) -> AbstractContextManager[bool]:
        """What the cleaner and retention hold while they exchange segments."""
        return self._lock

    def update_config(self, config: LogConfig) -> None:
        """Obey new settings from now on."""
        with self._lock:
            self._local.update_config(config)

    def remove_expired_producers(self) -> None:
        """Forget producers that wrote nothing for long."""
        with self._lock:
            self.producer_state.remove_expired(self.environment.clock.now_ms())

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
            write_partition_metadata(self.directory, topic_id, self.environment.fs)
        self.topic_id = topic_id

    # --- failures --------------------------------------------------------------------------------

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
        self.environment.on_failure(self.log_dir, error)
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

    # --- appending -------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: BytesLike,
        leader_epoch: int,
        origin: AppendOrigin = CLIENT,
        verification: Verification | None = None,
    ) -> LogAppendInfo:
        """Check, stamp and write one batch (or an old message set, as one batch).

        A retry of one of the producer's last five batches is answered with their offsets and
        writes nothing. ApiError says why a batch was refused; then nothing has changed.
        """
        if origin is CLIENT and (info := self._append_plain(records, leader_epoch)) is not None:
            return info
        batches = analyze(records, self._local.config.max_message_bytes, origin)
        with self._lock:
            if not batches:
                return self._nothing_appended()
            self._check_online()
            local, now_ms = self._local, self.environment.clock.now_ms()
            stamp = LeaderStamp(local.log_end_offset, leader_epoch, now_ms)
            prepared = prepare_as_leader(batches, stamp, local.config, origin)
            return self._append(prepared, now_ms, origin, verification)

    def _append_plain(self, records: BytesLike, leader_epoch: int) -> LogAppendInfo | None:
        """Write a batch in one go, if neither it nor the log asks for a second look.

        So it is nearly always, and takes less than half the time. None: nothing has happened, the
        long way decides. What both ways take, they write and note alike.
        """
        view = memoryview(records)
        header = read_plain_header(view)
        if header is None:
            return None
        with self._lock:
            if self._is_offline:
                return None
            try:
                now_ms = self.environment.clock.now_ms()
                written = self._writer.append_plain(view, header, leader_epoch, now_ms)
            except OSError as error:
                raise self._failed("append", error) from error
        if written is None:
            return None
        first, last, timestamp = written
        return LogAppendInfo(first, last, timestamp, NO_TIMESTAMP, self.log_start_offset, len(view))

    def append_as_follower(self, records: BytesLike) -> LogAppendInfo:
        """Write the leader's batches as they are, offsets and epochs included."""
        batches = analyze(records, MAX_INT32, REPLICATION)
        with self._lock:
            if not batches:
                return self._nothing_appended()
            self._check_online()
            prepared = prepare_as_follower(batches, records, self._local.log_end_offset)
            now_ms = self.environment.clock.now_ms()
            return self._append(prepared, now_ms, REPLICATION, None)

    def _nothing_appended(self) -> LogAppendInfo:
        return LogAppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, self.log_start_offset, 0)

    def _append(
        self,
        prepared: Prepared,
        now_ms: int,
        origin: AppendOrigin,
        verification: Verification | None,
    ) -> LogAppendInfo:
        local = self._local
        if prepared.size > local.config.segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{prepared.size} bytes do not fit a segment of {local.config.segment_bytes}",
            )
        try:
            repeated = self._writer.append(prepared, now_ms, origin, verification)
        except OSError as error:
            raise self._failed("append", error) from error
        if repeated is not None:
            first, last, time = repeated.first_offset, repeated.last_offset, repeated.timestamp
            return LogAppendInfo(first, last, time, time, self.log_start_offset, 0)
        if prepared.last_offset + 1 - local.recovery_point >= local.config.flush_messages:
            self.flush()
        return LogAppendInfo(
            prepared.first_offset,
            prepared.last_offset,
            prepared.max_timestamp,
            prepared.log_append_time,
            self.log_start_offset,
            prepared.size,
        )

    def start_verification(
        self, producer_id: int, sequence: int, producer_epoch: int
    ) -> Verification | None:
        """The guard for a transaction's first append; None if its transaction is open already."""
        with self._lock:
            entry = self.producer_state.producers.get(producer_id)
            if entry is not None and entry.current_txn_first_offset is not None:
                return None
            now_ms = self.environment.clock.now_ms()
            return self.producer_state.start_verification(
                producer_id, sequence, producer_epoch, now_ms
            )

    def roll(self) -> None:
        """Close the active segment and begin another at the log end offset."""
        with self._lock, self.storing("roll"):
            self._writer.roll()

    # --- reading ---------------------------------------------------------------------------------

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
            end_offset = self._local.log_end_offset
            if not self.log_start_offset <= offset <= end_offset:
                raise OffsetOutOfRange(
                    f"{self.partition}: offset {offset} is not in "
                    f"[{self.log_start_offset}, {end_offset}]"
                )
            wants_aborted = isolation is TXN_COMMITTED
            if offset == end_offset:
                return FetchData(None, False, [] if wants_aborted else None)
            try:
                return self._local.read(
                    offset,
                    max_bytes,
                    self._visible_end(isolation),
                    min_one_message=min_one_message,
                    wants_aborted=wants_aborted,
                )
            except OSError as error:
                raise self._failed("read", error) from error

    def _visible_end(self, isolation: FetchIsolation) -> LogOffsetMetadata:
        """Where `isolation` stops, with its place in the files."""
        if isolation is LOG_END:
            return self._local.log_end
        offset = self.last_stable_offset if isolation is TXN_COMMITTED else self.high_watermark
        return self._local.place_of(offset)

    def collect_aborted_txns(self, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """The aborted transactions that touch [start_offset, upper_bound)."""
        with self._lock:
            return self._local.collect_aborted_txns(start_offset, upper_bound)

    # --- watermarks ------------------------------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, kept between log start and end; what it became."""
        with self._lock:
            offset = min(max(offset, self.log_start_offset), self._local.log_end_offset)
            self._set_high_watermark(offset)
            return offset

    def _set_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        self.producer_state.on_high_watermark_updated(offset)

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark to `offset` if that is higher; ValueError beyond the end."""
        with self._lock:
            if offset > self._local.log_end_offset:
                raise ValueError(f"{self.partition}: {offset} is above {self.log_end_offset}")
            if offset <= self.high_watermark:
                return False
            self._set_high_watermark(offset)
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
            self._local.recovery_point = max(self._local.recovery_point, offset)
            self.leader_epochs.truncate_from_start(offset)
            self.producer_state.on_log_start_offset_incremented(offset)
            return True

    def assign_epoch_start_offset(self, leader_epoch: int, start_offset: int) -> None:
        """A leader begins to write at `start_offset`; does nothing for the epoch under way."""
        with self._lock:
            self.leader_epochs.assign(leader_epoch, start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int] | None:
        """(epoch, end offset) of the largest epoch not above `leader_epoch`; None if unknown."""
        with self._lock:
            found = self.leader_epochs.end_offset_for(leader_epoch, self._local.log_end_offset)
        return None if found[1] == UNDEFINED_EPOCH_OFFSET else found

    # --- truncating ------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Drop all records from `offset` on; False if there were none."""
        with self._lock, self.storing("truncate"):
            if offset >= self._local.log_end_offset:
                self.leader_epochs.truncate_from_end(self._local.log_end_offset)
                return False
            if self.segments.first.base_offset > offset:
                self._truncate_fully(offset, offset)
                return True
            self.delete_segments([s for s in self.segments if s.base_offset > offset])
            self.segments.active.truncate_to(offset)
            self._local.set_log_end(offset)
            self.leader_epochs.truncate_from_end(offset)
            self.log_start_offset = min(self.log_start_offset, offset)
            self._after_truncation(offset, min(self.high_watermark, offset))
            return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop the whole log and go on at `offset` (a follower whose leader's log begins later)."""
        with self._lock, self.storing("truncate"):
            self._truncate_fully(offset, offset if log_start_offset is None else log_start_offset)

    def _truncate_fully(self, offset: int, log_start_offset: int) -> None:
        self.delete_segments(list(self.segments))
        self._local.add_segment(offset)
        self._local.set_log_end(offset)
        self.leader_epochs.clear()
        self.producer_state.truncate_fully_and_start_at(offset)
        self.log_start_offset = log_start_offset
        self._after_truncation(offset, offset)

    def _after_truncation(self, offset: int, high_watermark: int) -> None:
        self._writer.rolled_at = min(self._writer.rolled_at, offset)
        now_ms = self.environment.clock.now_ms()
        rebuild_producer_state(
            self.producer_state, self.segments, self.log_start_offset, offset, now_ms
        )
        self.update_high_watermark(high_watermark)

    # --- deleting and replacing ------------------------------------------------------------------

    def delete_segments(self, segments: Iterable[LogSegment]) -> None:
        """Take segments and their snapshots out of the log; the files go after the delay.

        The lock is held, and OSErrors are the caller's to handle.
        """
        segments = list(segments)
        self._local.delete_segments(segments)
        self._delete_snapshots(segment.base_offset for segment in segments)

    def replace_segments(self, cleaned: LogSegment, old: list[LogSegment]) -> None:
        """Put a cleaned segment in the place of those it was made of; safe against crashes."""
        with self._lock, self.storing("replace segments"):
            self._local.replace_segments(cleaned, old)
            self._delete_snapshots(segment.base_offset for segment in old)

    def _delete_snapshots(self, offsets: Iterable[int]) -> None:
        """Those of segments that are gone; one that was replaced at its place keeps its own."""
        gone = set(offsets).difference(self.segments.base_offsets)
        self._local.delete_later(self.producer_state.mark_snapshots_deleted(gone))

    def delete_pending_files(self) -> None:
        """Remove the `.deleted` files whose delay is over."""
        with self._lock:
            due = self._local.take_due_deletes()
        if due:
            with self.storing("delete files"):
                for path in due:
                    self.environment.fs.remove(path)

    # --- flushing, closing -----------------------------------------------------------------------

    def flush(self, *, include_active: bool = False) -> None:
        """Bring everything up to the log end offset to the medium.

        `include_active` also flushes an active segment that got nothing since it was rolled.
        """
        end = self.log_end_offset
        self._flush(end, end + 1 if include_active else end)

    def maybe_flush(self) -> None:
        """Flush what a roll left behind, or everything if `flush.ms` is over."""
        if self.environment.clock.now_ms() - self.last_flush_ms >= self.config.flush_ms:
            self.flush()
        elif self._writer.rolled_at > self.recovery_point:
            self._flush(self._writer.rolled_at, self._writer.rolled_at)

    def _flush(self, offset: int, upper_bound: int) -> None:
        """Flush the segments below `upper_bound`; `offset` becomes the recovery point."""
        local, fs = self._local, self.environment.fs
        with self._lock, self.storing("flush"):
            self.leader_epochs.flush()
            truncations = local.truncations
            files = local.take_unflushed(upper_bound)
        with self.storing("flush"):
            for file in files:
                fs.sync(file)
            if files:
                fs.sync_directory(self.directory)
        with self._lock:
            if truncations == local.truncations:
                local.mark_flushed(offset)
                self.last_flush_ms = self.environment.clock.now_ms()

    def flush_leader_epochs(self) -> None:
        """Bring the leader epochs to the medium, if they have changed."""
        if self.leader_epochs.is_dirty:
            with self._lock, self.storing("write the leader epochs"):
                self.leader_epochs.flush()

    def release_idle_files(self) -> None:
        """Give back the descriptors of segments that were not used since the last call."""
        with self._lock:
            self._local.release_idle_files()

    def close(self) -> None:
        """Leave the directory as a clean stop leaves it; the log takes nothing any more."""
        with self._lock, self.storing("close"):
            self.producer_state.take_snapshot()
            self.leader_epochs.flush()
            self._local.close()
            self._is_offline = True

    def rename_directory(self, name: str) -> None:
        """Move the log to another directory beside this one (`-delete`, `-future` and back)."""
        with self._lock, self.storing("rename the directory"):
            target = self.directory.with_name(name)
            self._local.rename_directory(target)
            self.producer_state.directory = target
            self.leader_epochs.path = target / self.leader_epochs.path.name

    def delete(self) -> None:
        """Remove the directory with everything in it."""
        with self._lock, self.storing("delete"):
            for segment in self.segments:
                segment.release()
            self.environment.fs.remove_directory(self.directory)
            self._is_offline = True
