"""The log of one partition: files, producer state and leader epochs together (Kafka's UnifiedLog).

    log start offset ≤ last stable offset ≤ high watermark ≤ log end offset

Rules:
 1. Everything is checked before the first byte is written; a failed append changes no state.
 2. A write goes to the page cache and is not flushed. Everything below `recovery_point` is flushed.
 3. An OSError takes the whole log directory offline (`environment.on_failure`): a torn write was
    truncated or will be by recovery, and nothing more is acknowledged from a failing disk. Except
    when there are too many open files: then only the operation fails (`descriptors`).
 4. Files are deleted in two steps: renamed to `.deleted` at once, removed `file.delete.delay.ms`
    later, so that readers can finish.

`LogFiles`, the lower half, has the lock, flushing and failures. `LocalLog` manages segments,
`FastAppend` and `LogWriter` append, `recovery` loads, `cleaner` compacts, `truncation` and
`retention` remove records, `offset_lookup` finds offsets by timestamp.
"""

import logging
from pathlib import Path

from broker.errors import ApiError, ErrorCode, OffsetOutOfRange
from broker.log.append import (
    CLIENT,
    REPLICATION,
    AppendOrigin,
    LeaderStamp,
    LogAppendInfo,
    Prepared,
    analyze,
    is_large_message_set,
    prepare_as_follower,
    prepare_as_leader,
    validated_batch,
)
from broker.log.config import MAX_LONG, LogConfig
from broker.log.environment import LogEnvironment
from broker.log.fast_append import FastAppend
from broker.log.header_check import read_plain_header
from broker.log.leader_epochs import UNDEFINED_EPOCH_OFFSET
from broker.log.log_files import LoadedLog, LogFiles
from broker.log.offsets import (
    LOG_END,
    TXN_COMMITTED,
    FetchData,
    FetchIsolation,
    LogOffsetMetadata,
)
from broker.log.producer_entry import ProducerEntry
from broker.log.producer_state import VerificationGuard
from broker.log.transaction_index import AbortedTxn
from broker.log.validator import HeavyBatch
from broker.log.writer import LogWriter
from broker.model import TopicPartition
from broker.records.layout import (
    MAX_INT32,
    NO_TIMESTAMP,
    BytesLike,
)

logger = logging.getLogger(__name__)


class PartitionLog(LogFiles):
    """One partition's log.

    Field `log_start_offset`: the first offset that can be read. Retention and DeleteRecords raise
    it. Invariant: it never moves back, except in a truncation below it.
    Field `high_watermark`: the offset up to which all in-sync replicas have the log; consumers read
    no further. A loaded log has its log start offset here until the replica manager sets the
    checkpointed value. Invariant: log start offset ≤ high watermark ≤ log end offset.
    Fields `_writer`, `_fast`: the full and the fast path of an append. Invariant: both leave the
      same bytes and the same state behind; the fast one declines what it cannot do.
    """

    def __init__(
        self,
        directory: Path,
        partition: TopicPartition,
        config: LogConfig,
        environment: LogEnvironment,
        loaded: LoadedLog,
    ) -> None:
        super().__init__(directory, partition, config, environment, loaded)
        self._writer = LogWriter(self.local, self.producer_state, self.leader_epochs)
        self._fast = FastAppend(self.local, self.producer_state, self.leader_epochs)
        self.log_start_offset = loaded.log_start_offset
        self.high_watermark = loaded.log_start_offset

    # --- facts -----------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """The offset at which read_committed fetches end: the first one of an open transaction.

        A transaction is open here until its marker is below the high watermark, so that consumers
        never see the outcome of a transaction that a failover could undo.

        Not before the log start offset: DeleteRecords may have removed the beginning of the
        transaction.
        """
        unstable = self.producer_state.first_unstable_offset()
        if unstable is None:  # nearly always, and needed by every fetch
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    @property
    def active_producers(self) -> list[ProducerEntry]:
        """The producer state (DescribeProducers).

        A copy: the entries may change as soon as the lock is released.
        """
        with self._lock:
            return list(self.producer_state.producers.values())

    def remove_expired_producers(self) -> None:
        """Remove the producers that have expired.

        Called periodically. A producer expires after `producer.id.expiration.ms` without a write;
        one with an open transaction does not (Kafka's ProducerStateManager).
        """
        with self._lock:
            self.producer_state.remove_expired(self.environment.clock.now_ms())

    # --- appending -------------------------------------------------------------------------------

    def append_as_leader(
        self,
        records: BytesLike,
        leader_epoch: int,
        origin: AppendOrigin = CLIENT,
        verification: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """Validate one batch (or an old message set), assign its offsets and write it.

        A retry of one of the producer's last five batches returns the original offsets and writes
        nothing. ApiError says why a batch was refused; nothing has changed then.

        The returned offsets are not committed: with acks=all the caller waits until the high
        watermark has passed them. The epoch is stamped into every batch, so that followers learn of
        it by replication alone.
        """
        # For callers that may block: tools and tests. The broker calls the halves itself, with
        # `validated` and the flush in threads.
        try:
            info = self.append_on_loop(records, leader_epoch, origin, verification)
        except HeavyBatch:
            records = self.validated(records)
            origin = AppendOrigin.VALIDATED_CLIENT
            info = self.append_on_loop(records, leader_epoch, origin, verification)
        self.flush_if_due()
        return info

    def validated(self, records: BytesLike) -> bytes:
        """Validate and rewrite a client's batch that is heavy; may run in any thread.

        Heavy batches, which are large or must be decompressed, would hold up all other clients on
        the event loop. The lock is not needed: offsets and leader epoch are assigned later, under
        the lock.
        """
        now_ms = self.environment.clock.now_ms()
        return validated_batch(records, self.local.config, now_ms, self.partition)

    def append_on_loop(
        self,
        records: BytesLike,
        leader_epoch: int,
        origin: AppendOrigin = CLIENT,
        verification: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """As `append_as_leader`, but never waits for the disk or for a long computation.

        HeavyBatch if the batch must be `validated` first. With `flush.messages` a flush may be due
        afterwards (`flush_is_due`), and the batch must not be acknowledged before it.

        Between HeavyBatch and the second call other batches may be appended. That is safe, because
        nothing that depends on the log end was decided by then.
        """
        # Three stages: the fast path for plain batches, which most are; then the checks that need
        # no lock; then, under the lock, the rest, because offsets depend on the log end.
        if origin is CLIENT and (info := self._append_fast(records, leader_epoch)) is not None:
            return info
        if origin is CLIENT and is_large_message_set(records):
            raise HeavyBatch
        batches = analyze(records, self.local.config.max_message_bytes, origin)
        with self._lock:
            if not batches:
                return self._nothing_appended()
            self._check_online()
            local, now_ms = self.local, self.environment.clock.now_ms()
            stamp = LeaderStamp(local.log_end_offset, leader_epoch, now_ms, self.partition)
            prepared = prepare_as_leader(batches, stamp, local.config, origin)
            return self._append(prepared, now_ms, origin, verification)

    def _append_fast(self, records: BytesLike, leader_epoch: int) -> LogAppendInfo | None:
        """Try the fast path (`fast_append`); None, with nothing changed, if the full path must.

        The header is checked without the lock. Everything that depends on the log end, the producer
        state or the leader epoch is checked under it, by `FastAppend`.
        """
        view = memoryview(records)
        header = read_plain_header(view)
        if header is None:
            return None
        with self._lock:
            if self._is_offline:  # the full path raises the error
                return None
            try:
                now_ms = self.environment.clock.now_ms()
                written = self._fast.append(view, header, leader_epoch, now_ms)
            except OSError as error:
                raise self._failed("append", error) from error
        if written is None:
            return None
        first, last, timestamp = written
        return LogAppendInfo(first, last, timestamp, NO_TIMESTAMP, self.log_start_offset, len(view))

    def append_as_follower(self, records: BytesLike) -> LogAppendInfo:
        """Write the leader's batches unchanged, with their offsets and epochs.

        With `flush.messages` a flush may be due afterwards; before it, the leader must not be sent
        the new log end.

        Leader and follower must not differ in a single byte, so nothing is rewritten here; CRCs are
        checked, because bytes can be damaged on the way. A new leader epoch in a batch is recorded
        in the leader epoch checkpoint, by which a later leader finds where the logs diverge.
        """
        # The leader has checked sizes against its own max.message.bytes, which may be larger than
        # ours by now. A follower must not refuse what the leader has accepted.
        batches = analyze(records, MAX_INT32, REPLICATION)
        with self._lock:
            if not batches:
                return self._nothing_appended()
            self._check_online()
            prepared = prepare_as_follower(batches, records, self.local.log_end_offset)
            now_ms = self.environment.clock.now_ms()
            return self._append(prepared, now_ms, REPLICATION, None)

    def _nothing_appended(self) -> LogAppendInfo:
        return LogAppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, self.log_start_offset, 0)

    def _append(
        self,
        prepared: Prepared,
        now_ms: int,
        origin: AppendOrigin,
        verification: VerificationGuard | None,
    ) -> LogAppendInfo:
        """Write prepared batches and update everything that follows from them; the lock is held.

        A crash after the write and before the response leaves a batch that the producer sends
        again. An idempotent producer gets the original offsets then: recovery restores its last
        sequence numbers from the batches themselves.
        """
        local = self.local
        # Checked before the write: a set of batches is never split over two segments.
        if prepared.size > local.config.segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{prepared.size} bytes do not fit a segment of {local.config.segment_bytes}",
            )
        try:
            repeated = self._writer.append(prepared, now_ms, origin, verification)
        except OSError as error:
            raise self._failed("append", error) from error
        if repeated is not None:  # a retry: the response repeats that of the first attempt
            first, last, time = repeated.first_offset, repeated.last_offset, repeated.timestamp
            return LogAppendInfo(first, last, time, time, self.log_start_offset, 0)
        # flush.messages, by default never: durability comes from replication, as in Kafka.
        if local.config.flush_messages != MAX_LONG and self._has_reached_flush_messages():
            self.flush_is_due = True
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
    ) -> VerificationGuard | None:
        """The guard for a transaction's first append; None if the transaction is ongoing.

        KIP-890: a transactional batch of a partition that the coordinator does not know would hang
        for good. The guard ties the verification by the coordinator to the append that follows it:
        if the transaction ends in between, the append is refused.
        """
        with self._lock:
            entry = self.producer_state.producers.get(producer_id)
            if entry is not None and entry.current_txn_first_offset is not None:
                return None
            now_ms = self.environment.clock.now_ms()
            return self.producer_state.start_verification(
                producer_id, sequence, producer_epoch, now_ms
            )

    def roll(self) -> None:
        """Close the active segment and start a new one at the log end offset.

        A crash in between leaves at most an empty segment, which loading accepts.
        """
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
        """Up to `max_bytes` from the batch that holds `offset`, limited by `isolation`.

        The bytes start with a whole batch, whose first records may be before `offset`, and may end
        inside of one. With `min_one_message` the first batch is complete, however large.
        OffsetOutOfRange below the log start offset and above the log end offset.

        The lock is held while the position is looked up, not while the bytes are sent: the result
        refers to an open file, which outlives a deletion or truncation of its segment.
        """
        with self._lock:
            self.check_readable(offset)
            end_offset = self.local.log_end_offset
            wants_aborted = isolation is TXN_COMMITTED
            # A reader at the log end is the most frequent one, and needs no file.
            if offset == end_offset:
                # In the log, but above what this reader may see: for example a consumer of a
                # previous leader whose high watermark was higher.
                is_beyond = isolation is not LOG_END and offset > self._end_for(isolation)
                return FetchData(None, False, [] if wants_aborted else None, is_beyond)
            try:
                return self.local.read(
                    offset,
                    max_bytes,
                    self._visible_end(isolation),
                    min_one_message=min_one_message,
                    wants_aborted=wants_aborted,
                )
            except OSError as error:
                raise self._failed("read", error) from error

    def check_readable(self, offset: int) -> None:
        """Raise what `read` would raise at `offset`; for a fetch that has no room for records."""
        self._check_online()
        end_offset = self.local.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise OffsetOutOfRange(
                f"{self.partition}: offset {offset} is not in "
                f"[{self.log_start_offset}, {end_offset}]"
            )

    def _visible_end(self, isolation: FetchIsolation) -> LogOffsetMetadata:
        """The end offset of `isolation`, with its position in the files."""
        if isolation is LOG_END:
            return self.local.log_end
        return self.local.place_of(self._end_for(isolation))

    def _end_for(self, isolation: FetchIsolation) -> int:
        """The first offset that a consumer of this isolation level must not read.

        LOG_END, for followers, does not come here: they read uncommitted records too.
        """
        return self.last_stable_offset if isolation is TXN_COMMITTED else self.high_watermark

    def collect_aborted_txns(self, start_offset: int, upper_bound: int) -> list[AbortedTxn]:
        """The aborted transactions that overlap [start_offset, upper_bound)."""
        with self._lock:
            return self.local.collect_aborted_txns(start_offset, upper_bound)

    # --- watermarks ------------------------------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, limited to [log start, log end]; returns the new one.

        For followers, at startup with the checkpointed value, and after a truncation, which may
        lower the mark.
        """
        with self._lock:
            offset = min(max(offset, self.log_start_offset), self.local.log_end_offset)
            self._set_high_watermark(offset)
            return offset

    def _set_high_watermark(self, offset: int) -> None:
        """Set the mark and advance the first unstable offset, which depends on it."""
        self.high_watermark = offset
        self.producer_state.on_high_watermark_updated(offset)

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark to `offset` if that is higher; ValueError beyond the log end.

        Used by the leader, whose mark never moves back within its leader epoch: consumers have seen
        what is below it.
        """
        with self._lock:
            if offset > self.local.log_end_offset:
                raise ValueError(f"{self.partition}: {offset} is above {self.log_end_offset}")
            if offset <= self.high_watermark:
                return False
            self._set_high_watermark(offset)
            return True

    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Delete the records before `offset` (DeleteRecords, or a leader that did).

        Segments that end before it are deleted by the next retention run. OffsetOutOfRange above
        the high watermark: records that are not replicated cannot be deleted.
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
            # Deleted records need no recovery; and a recovery point below the start would make
            # the next unclean start read segments that are about to be deleted.
            self.local.recovery_point = max(self.local.recovery_point, offset)
            # Epochs of which all records are deleted cannot be a follower's last epoch any more.
            self.leader_epochs.truncate_from_start(offset)
            self.producer_state.on_log_start_offset_incremented(offset)
            return True

    def assign_epoch_start_offset(self, leader_epoch: int, start_offset: int) -> None:
        """Record that `leader_epoch` starts at `start_offset`; no change for the current epoch.

        A new leader does this before its first append, even if none follows: a follower that asks
        for the end of the previous epoch must get the offset at which this one began.
        """
        with self._lock:
            self.leader_epochs.assign(leader_epoch, start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int] | None:
        """(epoch, end offset) of the largest epoch not above `leader_epoch`; None if unknown.

        OffsetForLeaderEpoch (KIP-101, KIP-279): the offset at which a diverged log is truncated.
        """
        with self._lock:
            found = self.leader_epochs.end_offset_for(leader_epoch, self.local.log_end_offset)
        return None if found[1] == UNDEFINED_EPOCH_OFFSET else found
