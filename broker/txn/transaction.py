"""The state machine of one transactional id. No I/O, no clock: both are handed in.

How a change happens, in three steps:

1. `prepare_…` checks the request against the current metadata, raises the ApiError that Kafka would
   answer, or makes the metadata as it shall be and keeps it in `pending`. Until step 3 every other
   change is refused with CONCURRENT_TRANSACTIONS.
2. The caller stores `pending` in the transaction log.
3. `complete_transition` makes it current; `abandon_transition` forgets it if it was not stored.

Fencing is the exception: the producer's epoch counts up in step 1, so that the old producer is
refused from then on, even if step 2 fails. The epoch is not given to anybody before it is stored,
so it need not count up again when fencing is tried anew.

Epochs: a producer id is used with the epochs 0 to 32766. The last one, 32767, is kept back for
fencing, so that there always is one; then InitProducerId takes a new producer id.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
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


class ProducerIdAndEpoch(NamedTuple):
    """Who a producer is: the id, and the epoch that tells it from its predecessors."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """What is known of a transactional id; all of it but two fields is stored."""

    producer_id: int
    txn_timeout_ms: int
    txn_last_update_timestamp: int
    """When it last changed; the transactional id expires that long after."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    """-1 only before the first InitProducerId is stored."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch whose owner got the current one by asking for a bump (KIP-360): if it asks
    again, its answer was lost. -1 if the current one went to a producer that began anew.
    Not stored, as in Kafka: after a restart such a retry is fenced."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the epochs of one ran out; for the same retry. Not stored."""
    state: TransactionState = EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    """Invariant: each once; none unless a transaction is open or ending."""
    txn_start_timestamp: int = NO_TIMESTAMP
    """When its first partition was added; kept until the producer begins anew."""

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next epoch is the one that is kept back for fencing."""
        return _is_exhausted(self.producer_epoch)


def _is_exhausted(producer_epoch: int) -> bool:
    return producer_epoch >= MAX_PRODUCER_EPOCH - 1


@dataclass(slots=True)
class Transaction:
    """One transactional id: what is, and what is about to be."""

    transactional_id: str
    current: TransactionMetadata
    """Invariant: stored, but for a fenced epoch and for partitions that have their marker."""
    pending: TransactionMetadata | None = field(default=None)
    """The change under way. Invariant: its state may follow the current one."""
    has_failed_epoch_fence: bool = False
    """Whether the current epoch fences a producer but could not be stored."""

    # --- InitProducerId ---------------------------------------------------------------------------

    def needs_new_producer_id(self, expected: ProducerIdAndEpoch | None) -> bool:
        """Whether InitProducerId shall bring a fresh producer id, because the epochs ran out."""
        is_owner = expected is None or expected.producer_epoch == self.current.producer_epoch
        return self.current.is_epoch_exhausted and self.current.state in IDLE and is_owner

    def prepare_init_producer_id(
        self,
        txn_timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        now_ms: int,
        new_producer_id: int | None = None,
    ) -> TransactionMetadata:
        """A new epoch for a producer; or, inside of a transaction, the abort that comes first.

        `expected` is who the producer thinks it is, when it asks for a bump (KIP-360):
        PRODUCER_FENCED if somebody else has taken over. CONCURRENT_TRANSACTIONS while a transaction
        is ending.
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
        """Whether a producer that wants its epoch bumped can be the owner of this id.

        A. nobody has been: its state expired, and it begins anew;
        B. it has the producer id (its epoch is looked at when a new one is made);
        C. it had the one before, up to the last epoch: a retry of the bump that changed the id.
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
        """The next producer id and epoch, and the last epoch to remember.

        A. a producer that begins anew: the next epoch, and nobody may ask for it again;
        B. the owner wants a bump: the next epoch, and its present one is remembered;
        C. the owner repeats itself, the answer was lost: what it was given then.
        """
        current = self.current
        epoch = current.producer_epoch
        is_bump = expected is not None
        if expected is None or epoch in (NO_PRODUCER_EPOCH, expected.producer_epoch):
            last_epoch = epoch if is_bump else NO_PRODUCER_EPOCH  # B, A
            if not current.is_epoch_exhausted:
                return current.producer_id, epoch + 1, last_epoch
            if new_producer_id is None:  # it changed while the caller looked
                raise self._concurrent()
            return new_producer_id, 0, last_epoch
        if expected.producer_epoch == current.last_producer_epoch:  # C
            return current.producer_id, epoch, current.last_producer_epoch
        raise self._fenced(expected.producer_epoch)

    # --- within a transaction ---------------------------------------------------------------------

    def prepare_add_partitions(
        self, producer: ProducerIdAndEpoch, partitions: tuple[TopicPartition, ...], now_ms: int
    ) -> TransactionMetadata | None:
        """Partitions join the transaction, which begins with the first; None: they all have."""
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
        """Which partitions are part of the transaction (KIP-890); TRANSACTION_ABORTABLE if not.

        What is pending does not count: who asks checks once more when the append happens.
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
        """The producer commits or aborts; None if it has, and this is a retry.

        INVALID_TXN_STATE if there is nothing to end, or it was ended the other way.
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
        """Shut the producer out and abort its transaction: it timed out, or was replaced."""
        self._check_nothing_pending()
        epoch = self.current.producer_epoch
        self.current = replace(
            self.current,
            producer_epoch=epoch if self.has_failed_epoch_fence else epoch + 1,
            last_producer_epoch=NO_PRODUCER_EPOCH,
        )
        # Until it is stored; then it is a new epoch to the next one who fences.
        self.has_failed_epoch_fence = True
        return self._prepare_end(commit=False, now_ms=now_ms)

    def _prepare_end(self, *, commit: bool, now_ms: int) -> TransactionMetadata:
        state = PREPARE_COMMIT if commit else PREPARE_ABORT
        return self._prepare(replace(self.current, state=state, txn_last_update_timestamp=now_ms))

    def remove_partitions(self, done: Collection[TopicPartition]) -> None:
        """These partitions have their marker, or need none any more."""
        left = tuple(partition for partition in self.current.partitions if partition not in done)
        self.current = replace(self.current, partitions=left)

    def prepare_complete(self, now_ms: int) -> TransactionMetadata:
        """All markers will have been written when this is stored."""
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
        """Whether it was open for longer than its producer wished."""
        current = self.current
        deadline_ms = current.txn_start_timestamp + current.txn_timeout_ms
        return self.pending is None and current.state == ONGOING and deadline_ms < now_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the transactional id was not used for so long that it may be forgotten."""
        is_old = self.current.txn_last_update_timestamp <= now_ms - expiration_ms
        return self.pending is None and self.current.state in IDLE and is_old

    def prepare_dead(self) -> None:
        """The tombstone is about to be written."""
        self._prepare(replace(self.current, state=DEAD, partitions=()))

    # --- transitions ------------------------------------------------------------------------------

    def complete_transition(self) -> None:
        """What was pending has been stored."""
        assert self.pending is not None  # noqa: S101 - nobody completes what was not prepared
        self.current, self.pending = self.pending, None
        self.has_failed_epoch_fence = False

    def abandon_transition(self) -> None:
        """What was pending could not be stored: a retry may try again."""
        self.pending = None

    def _prepare(self, target: TransactionMetadata) -> TransactionMetadata:
        assert self.pending is None  # noqa: S101 - see the strategy above
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
            f"{self.transactional_id}: the transaction is changing, try again",
        )

    def _fenced(self, producer_epoch: int) -> ApiError:
        return ApiError(
            ErrorCode.PRODUCER_FENCED,
            f"{self.transactional_id}: the epoch is {self.current.producer_epoch}, "
            f"not {producer_epoch}",
        )
