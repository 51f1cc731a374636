"""The full path of an append: to the files, the producer state and the leader epochs together.

Batches that are unusual in any respect come here, from the first batch of a producer to an old
format; all others take the fast path (`fast_append`).

`PartitionLog` holds its lock for everything here, and turns OSErrors into a response.
"""

import logging

from broker.log.append import CLIENTS, REPLICATION, AppendOrigin, Prepared
from broker.log.leader_epochs import LeaderEpochs
from broker.log.local_log import LocalLog
from broker.log.producer_entry import BatchMetadata
from broker.log.producer_state import ProducerState, VerificationGuard
from broker.log.segment import LogSegment
from broker.records.layout import CURRENT_MAGIC

logger = logging.getLogger(__name__)


class LogWriter:
    """The writing side of one log."""

    __slots__ = ("_leader_epochs", "_local", "_producers")

    def __init__(
        self, local: LocalLog, producers: ProducerState, leader_epochs: LeaderEpochs
    ) -> None:
        self._local = local
        self._producers = producers
        self._leader_epochs = leader_epochs

    def append(
        self,
        prepared: Prepared,
        now_ms: int,
        origin: AppendOrigin,
        verification: VerificationGuard | None,
    ) -> BatchMetadata | None:
        """Write the batches; if they repeat one of the producer's last batches, return that.

        ApiError if the producer may not write it now.
        """
        self._assign_epochs(prepared)
        self._maybe_roll(prepared, now_ms)
        repeated = self._check_producer(prepared, origin, verification)
        if repeated is None:
            segment = self._local.append(prepared)
            self._note_producers(prepared, segment)
        return repeated

    def _assign_epochs(self, prepared: Prepared) -> None:
        epochs = self._leader_epochs
        for header in prepared.headers:
            if header.magic == CURRENT_MAGIC:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
            elif epochs.entries:
                # Old formats carry no epoch, so the entries would be wrong from here on.
                epochs.clear()

    def _check_producer(
        self, prepared: Prepared, origin: AppendOrigin, verification: VerificationGuard | None
    ) -> BatchMetadata | None:
        """Idempotence: the batch that is repeated, None if this one may be written, or ApiError."""
        header = prepared.headers[0]
        if header.producer_id < 0 or origin is REPLICATION:
            return None
        is_client = origin in CLIENTS
        if is_client and self._producers.is_next(header):
            return None
        if is_client and (written := self._producers.find_duplicate(header)) is not None:
            return written
        self._producers.check(prepared.batches[0], verification, is_client=is_client)
        return None

    def _note_producers(self, prepared: Prepared, segment: LogSegment) -> None:
        producers = self._producers
        for index, header in enumerate(prepared.headers):
            if header.producer_id < 0:
                continue
            txn = producers.append(prepared.batches[index], header)
            aborted = producers.complete(txn) if txn is not None else None
            if aborted is not None:
                segment.indexes.txn.append(aborted)
        producers.map_end_offset = prepared.last_offset + 1

    # --- rolling ---------------------------------------------------------------------------------

    def _maybe_roll(self, prepared: Prepared, now_ms: int) -> None:
        active = self._local.segments.active
        timestamp = prepared.max_timestamp
        if active.should_roll(prepared.size, timestamp, prepared.last_offset, now_ms):
            # The first offset inside an old compressed set is not known without opening it.
            is_old = prepared.headers[0].magic < CURRENT_MAGIC
            self.roll(0 if is_old else prepared.first_offset)

    def roll(self, expected_offset: int = 0) -> None:
        """Start a new segment at the log end offset, or at `expected_offset` if that is higher."""
        base_offset = self._local.roll(expected_offset).base_offset
        self._producers.map_end_offset = base_offset
        # Not flushed: a snapshot that a crash tears fails its crc check and is rebuilt.
        self._producers.take_snapshot(sync=False)
        logger.debug("rolled log=%s base_offset=%s", self._local.directory, base_offset)
