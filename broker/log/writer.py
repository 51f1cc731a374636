"""Appends what was checked: to the files, to the producers' state and to the leader epochs at once.

There are two ways to the file. Nearly every batch takes the short one, `append_plain`, where all
that could be asked of it is asked in one go. What is unusual in any respect, from the first batch
of a producer to an old format, takes the long one, `append`. For what both take they do the same.

`PartitionLog` holds its lock for everything here, and turns OSErrors into an answer.
"""

import logging

from broker.log.append import CLIENT, REPLICATION, AppendOrigin, Prepared, stamped
from broker.log.leader_epochs import LeaderEpochs
from broker.log.local_log import LocalLog
from broker.log.producer_entry import BatchMetadata
from broker.log.producer_state import ProducerState, Verification
from broker.log.segment import LogSegment
from broker.records.batch import increment_sequence
from broker.records.layout import CURRENT_MAGIC, TRANSACTIONAL_MASK

logger = logging.getLogger(__name__)


class LogWriter:
    """The writing side of one log.

    Field `rolled_at`: a roll happened: what lies before this offset shall be flushed soon.
    """

    __slots__ = ("_leader_epochs", "_local", "_producers", "rolled_at")

    def __init__(
        self, local: LocalLog, producers: ProducerState, leader_epochs: LeaderEpochs
    ) -> None:
        self._local = local
        self._producers = producers
        self._leader_epochs = leader_epochs
        self.rolled_at = 0

    # --- the short way ---------------------------------------------------------------------------

    def append_plain(
        self, view: memoryview, header: tuple[int, ...], leader_epoch: int, now_ms: int
    ) -> tuple[int, int, int] | None:
        """Write a batch of which `read_plain_header` gave this header: (first, last, timestamp).

        None, and nothing done, if the log must think about it: it opens an epoch, a segment or a
        producer, repeats a batch, or has settings that look at records.
        """
        _, _, _, _, _, attributes, delta, _, timestamp, producer_id, epoch, sequence, _ = header
        local, producers, size = self._local, self._producers, len(view)
        first_offset = local.log_end_offset
        last_offset = first_offset + delta
        segment = local.segments.active
        producer = producers.producers.get(producer_id)
        if producer is None:
            is_next = producer_id < 0 and not attributes & TRANSACTIONAL_MASK
        else:
            is_next = producer.is_next(epoch, sequence, attributes)
        if (
            not is_next
            or not local.config.takes_batches_as_they_are
            or size > local.config.max_message_bytes
            or leader_epoch != self._leader_epochs.latest_epoch
            or segment.should_roll(size, timestamp, last_offset, now_ms)
        ):
            return None
        segment.append_batch(
            stamped(view, first_offset, leader_epoch), size, last_offset, timestamp
        )
        producers.map_end_offset = local.log_end_offset = last_offset + 1
        if producer is not None:
            last_sequence = increment_sequence(sequence, delta)
            producer.add_next(last_sequence, last_offset, delta, timestamp)
        return first_offset, last_offset, timestamp

    # --- the long way ----------------------------------------------------------------------------

    def append(
        self,
        prepared: Prepared,
        now_ms: int,
        origin: AppendOrigin,
        verification: Verification | None,
    ) -> BatchMetadata | None:
        """Write, unless it repeats one of its producer's last batches: then that batch.

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
                # Old formats carry no epoch, so from here on the entries would lie.
                epochs.clear()

    def _check_producer(
        self, prepared: Prepared, origin: AppendOrigin, verification: Verification | None
    ) -> BatchMetadata | None:
        """Idempotence: the batch that is repeated, an ApiError, or None to go on and write."""
        header = prepared.headers[0]
        if header.producer_id < 0 or origin is REPLICATION:
            return None
        is_client = origin is CLIENT
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
                segment.txn_index.append(aborted)
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
        """Begin another segment, at the log end offset or at `expected_offset` if it is higher."""
        base_offset = self._local.roll(expected_offset).base_offset
        self._producers.map_end_offset = base_offset
        # Not flushed: one that a crash tears is told by its crc, and made again from the log.
        self._producers.take_snapshot(sync=False)
        self.rolled_at = base_offset
        logger.debug("rolled log=%s base_offset=%s", self._local.directory, base_offset)
