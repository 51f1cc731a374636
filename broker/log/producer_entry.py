"""The state of one producer in one log: its epoch, its last batches, its open transaction.

The rules of idempotence (KIP-98), checked before a batch is written:

    epoch older than the last seen               INVALID_PRODUCER_EPOCH (fenced)
    same first and last sequence as one of the   a retry: answered with the original offsets
      last five batches
    new epoch                                    must begin with sequence 0
    same epoch                                   must continue the last batch
    nothing known of the producer                any sequence is valid: its state may have expired

A follower accepts what the leader accepted.
"""

from collections import deque
from typing import NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.log.producer_snapshot import SnapshotEntry
from broker.records.batch import BatchHeader, increment_sequence
from broker.records.layout import (
    CONTROL_MASK,
    MAX_INT32,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_MASK,
)

NUM_BATCHES_TO_RETAIN = 5


class BatchMetadata(NamedTuple):
    """The part of a written batch that is needed to answer a retry."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        """The offset of the batch's first record."""
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        """The sequence of the batch's first record; they wrap around after the largest int32."""
        return increment_sequence(self.last_sequence, -self.offset_delta)


class ProducerEntry:
    """The state of one producer.

    Field `batches`: the last five data batches of the current epoch, oldest first.
    Field `current_txn_first_offset`: the first offset of its open transaction; None outside of one.
    Field `coordinator_epoch`: that of the last marker; older coordinators are fenced.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP
        self.current_txn_first_offset: int | None = None
        self.batches: deque[BatchMetadata] = deque(maxlen=NUM_BATCHES_TO_RETAIN)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record written; -1 if unknown."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int | None:
        """The offset of the last data record written; None if unknown."""
        return self.batches[-1].last_offset if self.batches else None

    def is_next(self, producer_epoch: int, base_sequence: int, attributes: int) -> bool:
        """Whether the batch continues in the same epoch and the same transaction state.

        True for nearly every batch; all other checks are then unnecessary.
        """
        return (
            producer_epoch == self.producer_epoch
            and bool(self.batches)
            and base_sequence == self.batches[-1][0] + 1
            and attributes & (CONTROL_MASK | TRANSACTIONAL_MASK)
            == (0 if self.current_txn_first_offset is None else TRANSACTIONAL_MASK)
        )

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch that `header` repeats, if it is one of the last five."""
        if header.producer_epoch != self.producer_epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def check_epoch(self, producer_epoch: int) -> None:
        """INVALID_PRODUCER_EPOCH for a producer that a newer one has replaced."""
        if producer_epoch < self.producer_epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {self.producer_id} has epoch {self.producer_epoch}, "
                f"the batch says {producer_epoch}",
            )

    def check_sequence(self, header: BatchHeader) -> None:
        """OUT_OF_ORDER_SEQUENCE_NUMBER unless the batch continues the last one."""
        if self.producer_epoch == NO_PRODUCER_EPOCH:
            return
        is_new_epoch = header.producer_epoch != self.producer_epoch
        last = NO_SEQUENCE if is_new_epoch else self.last_sequence
        expected = 0 if last == MAX_INT32 else last + 1
        if header.base_sequence != expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {self.producer_id} epoch {header.producer_epoch}: "
                f"expected sequence {expected}, found {header.base_sequence}",
            )

    def check_transaction(self, header: BatchHeader) -> None:
        """INVALID_TXN_STATE for a plain batch inside of a transaction."""
        if self.current_txn_first_offset is not None and not header.is_transactional:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {self.producer_id}: expected a transactional batch, because its "
                f"transaction from offset {self.current_txn_first_offset} is open",
            )

    def check_coordinator(self, coordinator_epoch: int) -> None:
        """TRANSACTION_COORDINATOR_FENCED for the marker of a coordinator that was replaced."""
        if coordinator_epoch < self.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {self.producer_id}: marker of coordinator epoch {coordinator_epoch}, "
                f"after one of {self.coordinator_epoch}",
            )

    def _take_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch

    def add_batch(self, header: BatchHeader) -> None:
        """Record a data batch."""
        self._take_epoch(header.producer_epoch)
        self.add_next(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
        )

    def add_next(
        self, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int
    ) -> None:
        """Record a data batch of the same epoch."""
        fields = (last_sequence, last_offset, offset_delta, timestamp)
        self.batches.append(tuple.__new__(BatchMetadata, fields))  # half the time of the class
        self.last_timestamp = timestamp

    def end_transaction(self, producer_epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """Record a marker."""
        self._take_epoch(producer_epoch)
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = None
        self.last_timestamp = timestamp

    def to_snapshot(self) -> SnapshotEntry:
        """The snapshot entry, which holds only the last batch."""
        txn = self.current_txn_first_offset
        last = self.batches[-1] if self.batches else BatchMetadata(NO_SEQUENCE, -1, 0, 0)
        return SnapshotEntry(
            self.producer_id,
            self.producer_epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            -1 if txn is None else txn,
        )

    @classmethod
    def from_snapshot(cls, saved: SnapshotEntry) -> "ProducerEntry":
        """The entry, with the fields that a snapshot stores."""
        entry = cls(saved.producer_id)
        entry.producer_epoch = saved.producer_epoch
        entry.coordinator_epoch = saved.coordinator_epoch
        entry.last_timestamp = saved.timestamp
        if saved.current_txn_first_offset >= 0:
            entry.current_txn_first_offset = saved.current_txn_first_offset
        if saved.last_offset >= 0:
            entry.batches.append(
                BatchMetadata(
                    saved.last_sequence, saved.last_offset, saved.offset_delta, saved.timestamp
                )
            )
        return entry
