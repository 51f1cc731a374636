"""The state machine of one transactional id. No I/O and no clock: the caller passes the time in.

A change has three steps:

1. `prepare_…` checks the request against the current metadata. It raises the ApiError that Kafka
   would answer, or keeps the new metadata in `pending`. Until step 3 every other change is refused
   with CONCURRENT_TRANSACTIONS.
2. The caller stores `pending` in the transaction log.
3. `complete_transition` makes it current, or `abandon_transition` drops it if it was not stored.

Fencing is the exception: the producer epoch is incremented in step 1, so that the old producer is
refused even if step 2 fails. No producer gets that epoch before it is stored, so a retry of the
fencing does not increment it again.

Epochs: a producer id is used with epochs 0 to 32766. Epoch 32767 is reserved for fencing, so that
there is always one left; after that InitProducerId uses a new producer id.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from broker.txn.states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ENDING,
    IDLE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    VALID_PREVIOUS_STATES,
    TransactionState,
)

MAX_PRODUCER_EPOCH: Final = 2**15 - 1


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """The state of a transactional id. All fields but two are stored."""

    producer_id: int
    txn_timeout_ms: int
    txn_last_update_timestamp: int
    """Time of the last change, from which the expiration of the transactional id counts."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    """-1 only before the first InitProducerId is stored."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that was bumped to the current one by its own producer (KIP-360): a request that
    names it is a retry whose response was lost. -1 if the current epoch went to a new producer. Not
    stored, as in Kafka: after a failover such a retry is fenced."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before its epochs were exhausted, for the same retry. Not stored."""
    state: TransactionState = EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    """Invariant: no duplicates; empty unless a transaction is ongoing or being completed."""
    txn_start_timestamp: int = NO_TIMESTAMP
    """When the first partition was added; kept until the next InitProducerId."""

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next epoch is the one reserved for fencing."""
        return _is_exhausted(self.producer_epoch)


def _is_exhausted(producer_epoch: int) -> bool:
    return producer_epoch >= MAX_PRODUCER_EPOCH - 1


@dataclass(slots=True)
class Transaction:
    """One transactional id: its current metadata and the pending change."""

    transactional_id: str
    current: TransactionMetadata
    """Invariant: stored, except a fenced epoch and the removal of partitions with a marker."""
    pending: TransactionMetadata | None = field(default=None)
    """The change being stored. Invariant: a valid transition from the current state."""
    has_failed_epoch_fence: bool = False
    """Whether the current epoch fences a producer and has not been stored."""

    # --- InitProducerId ---------------------------------------------------------------------------

    def needs_new_producer_id(self, expected: ProducerIdAndEpoch | None) -> bool:
        """Whether InitProducerId needs a new producer id because the epochs are exhausted."""
        is_owner = expected is None or expected.producer_epoch == self.current.producer_epoch
        return self.current.is_epoch_exhausted and self.current.state in IDLE and is_owner

    def prepare_init_producer_id(
        self,
        txn_timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        now_ms: int,
        new_producer_id: int | None = None,
    ) -> TransactionMetadata:
        """Prepare the next epoch for a producer; during a transaction, the abort that comes first.

        `expected` is the id and epoch of a producer that requests an epoch bump (KIP-360):
        PRODUCER_FENCED if another producer has taken over. CONCURRENT_TRANSACTIONS while a
        transaction is being completed.
        """
        self._check_nothing_pending()
        if expected is not None and not self._may_continue(expected):
            raise self._fenced(expected.producer_epoch)
        if self.current.state in ENDING:
            raise self._concurrent()
        if self.current.state == ONGOING:
            return self.prepare_fenced_abort(now_ms)
        producer_id, producer_epoch, last_epoch = self._next_epoch(expected, new_producer_id)
        is_retry = producer_epoch == self.current.producer_epoch
        previous_id = self.current.previous_producer_id if is_retry else self.current.producer_id
        return self._prepare(
            TransactionMetadata(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                last_producer_epoch=last_epoch,
                previous_producer_id=previous_id,
                txn_timeout_ms=txn_timeout_ms,
                txn_last_update_timestamp=now_ms,
            )
        )

    def _may_continue(self, expected: ProducerIdAndEpoch) -> bool:
        """Whether a producer that requests an epoch bump can be the owner of this id.

        A. The id had no owner: its state expired, and the producer starts again.
        B. It has the current producer id (`_next_epoch` checks its epoch).
        C. It has the previous producer id and an exhausted epoch: a retry of the bump that changed
           the producer id.
        """
        current = self.current
        if current.producer_epoch == NO_PRODUCER_EPOCH:  # A
            return True
        if expected.producer_id == current.producer_id:  # B
            return True
        is_previous = expected.producer_id == current.previous_producer_id
        return is_previous and _is_exhausted(expected.producer_epoch)  # C

    def _next_epoch(
        self, expected: ProducerIdAndEpoch | None, new_producer_id: int | None
    ) -> tuple[int, int, int]:
        """The next producer id and epoch, and the new `last_producer_epoch`.

        A. A new producer: the next epoch; there is no retry to recognize.
        B. The owner requests a bump: the next epoch; its present one is remembered for a retry.
        C. The owner retries because the response was lost: the epoch it was assigned then.
        """
        current = self.current
        epoch = current.producer_epoch
        is_bump = expected is not None
        if expected is None or epoch in (NO_PRODUCER_EPOCH, expected.producer_epoch):
            last_epoch = epoch if is_bump else NO_PRODUCER_EPOCH  # B, A
            if not current.is_epoch_exhausted:
                return current.producer_id, epoch + 1, last_epoch
            if new_producer_id is None:  # exhausted since the caller checked
                raise self._concurrent()
            return new_producer_id, 0, last_epoch
        if expected.producer_epoch == current.last_producer_epoch:  # C
            return current.producer_id, epoch, current.last_producer_epoch
        raise self._fenced(expected.producer_epoch)

    # --- within a transaction ---------------------------------------------------------------------

    def prepare_add_partitions(
        self, producer: ProducerIdAndEpoch, partitions: tuple[TopicPartition, ...], now_ms: int
    ) -> TransactionMetadata | None:
        """Add partitions; the first one starts the transaction. None if all are in it already."""
        self._check_producer(producer)
        self._check_nothing_pending()
        current = self.current
        if current.state in ENDING:
            raise self._concurrent()
        if current.state == ONGOING and set(partitions) <= set(current.partitions):
            return None
        is_first = current.state != ONGOING
        return self._prepare(
            replace(
                current,
                state=ONGOING,
                partitions=tuple(dict.fromkeys((*current.partitions, *partitions))),
                txn_start_timestamp=now_ms if is_first else current.txn_start_timestamp,
                txn_last_update_timestamp=now_ms,
            )
        )

    def check_partitions(
        self, producer: ProducerIdAndEpoch, partitions: tuple[TopicPartition, ...]
    ) -> dict[TopicPartition, ErrorCode]:
        """Verify partitions (KIP-890): TRANSACTION_ABORTABLE for those not in the transaction.

        Pending changes are ignored: the caller verifies again at the append.
        """
        self._check_producer(producer)
        if self.current.state in ENDING:
            raise self._concurrent()
        added = set(self.current.partitions)
        return {
            partition: ErrorCode.NONE if partition in added else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    # --- its end ----------------------------------------------------------------------------------

    def prepare_end(
        self, producer: ProducerIdAndEpoch, *, commit: bool, now_ms: int
    ) -> TransactionMetadata | None:
        """Prepare a commit or abort; None if that is complete and the request is a retry.

        INVALID_TXN_STATE if no transaction is ongoing, or if it ended with the other outcome.
        """
        self._check_producer(producer)
        self._check_nothing_pending()
        state = self.current.state
        if state == ONGOING:
            return self._prepare_end(commit=commit, now_ms=now_ms)
        if state == (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
            return None
        if state == (PREPARE_COMMIT if commit else PREPARE_ABORT):
            raise self._concurrent()
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"{self.transactional_id}: cannot {'commit' if commit else 'abort'} "
            f"in state {state.kafka_name}",
        )

    def prepare_fenced_abort(self, now_ms: int) -> TransactionMetadata:
        """Fence the producer and prepare the abort: it timed out, or a new producer starts."""
        self._check_nothing_pending()
        epoch = self.current.producer_epoch
        self.current = replace(
            self.current,
            producer_epoch=epoch if self.has_failed_epoch_fence else epoch + 1,
            last_producer_epoch=NO_PRODUCER_EPOCH,
        )
        # Reset when it is stored; the next fencing then increments the epoch again.
        self.has_failed_epoch_fence = True
        return self._prepare_end(commit=False, now_ms=now_ms)

    def _prepare_end(self, *, commit: bool, now_ms: int) -> TransactionMetadata:
        state = PREPARE_COMMIT if commit else PREPARE_ABORT
        return self._prepare(replace(self.current, state=state, txn_last_update_timestamp=now_ms))

    def remove_partitions(self, done: Collection[TopicPartition]) -> None:
        """Remove partitions that have their marker or were deleted."""
        left = tuple(partition for partition in self.current.partitions if partition not in done)
        self.current = replace(self.current, partitions=left)

    def prepare_complete(self, now_ms: int) -> TransactionMetadata:
        """Prepare the final state; it is stored after all markers are written."""
        committed = self.current.state == PREPARE_COMMIT
        return self._prepare(
            replace(
                self.current,
                state=COMPLETE_COMMIT if committed else COMPLETE_ABORT,
                partitions=(),
                txn_last_update_timestamp=now_ms,
            )
        )

    # --- time -------------------------------------------------------------------------------------

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction has been ongoing for longer than its timeout."""
        current = self.current
        deadline_ms = current.txn_start_timestamp + current.txn_timeout_ms
        return self.pending is None and current.state == ONGOING and deadline_ms < now_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the transactional id has been idle for `expiration_ms`."""
        is_old = self.current.txn_last_update_timestamp <= now_ms - expiration_ms
        return self.pending is None and self.current.state in IDLE and is_old

    def prepare_dead(self) -> None:
        """Prepare the removal; the tombstone is about to be appended."""
        self._prepare(replace(self.current, state=DEAD, partitions=()))

    # --- transitions ------------------------------------------------------------------------------

    def complete_transition(self) -> None:
        """Make the pending change current; it has been stored."""
        assert self.pending is not None  # noqa: S101 - prepared by the caller
        self.current, self.pending = self.pending, None
        self.has_failed_epoch_fence = False

    def abandon_transition(self) -> None:
        """Drop the pending change; it could not be stored, and the client may retry."""
        self.pending = None

    def _prepare(self, target: TransactionMetadata) -> TransactionMetadata:
        assert self.pending is None  # noqa: S101 - see step 1 above
        if self.current.state not in VALID_PREVIOUS_STATES[target.state]:
            raise AssertionError(
                f"{self.transactional_id}: {self.current.state.name} → {target.state.name}"
            )
        self.pending = target
        return target

    # --- checks, in the order in which Kafka makes them -------------------------------------------

    def _check_producer(self, producer: ProducerIdAndEpoch) -> None:
        if producer.producer_id != self.current.producer_id:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"{self.transactional_id} belongs to producer id {self.current.producer_id}, "
                f"not to {producer.producer_id}",
            )
        if producer.producer_epoch != self.current.producer_epoch:
            raise self._fenced(producer.producer_epoch)

    def _check_nothing_pending(self) -> None:
        if self.pending is not None:
            raise self._concurrent()

    def _concurrent(self) -> ApiError:
        return ApiError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"{self.transactional_id}: a change of the transaction is in progress",
        )

    def _fenced(self, producer_epoch: int) -> ApiError:
        return ApiError(
            ErrorCode.PRODUCER_FENCED,
            f"{self.transactional_id}: the epoch is {self.current.producer_epoch}, "
            f"not {producer_epoch}",
        )
