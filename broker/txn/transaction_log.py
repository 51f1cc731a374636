"""The transactions this broker coordinates: in memory, and in its partitions of the log.

Who leads a partition of `__transaction_state` coordinates the transactional ids that hash to it,
under the partition's leader epoch as coordinator epoch. Leadership may come and go while something
is awaited; so whoever changed a transaction looks again afterwards whether it is still the same
coordinator's, and else answers NOT_COORDINATOR: what was appended counts for the next one.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from broker.clock import Clock
from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.java_strings import partition_for
from broker.txn.records import build_tombstones, build_transaction_batch, read_key, read_value
from broker.txn.storage import TransactionTopic
from broker.txn.transaction import Transaction, TransactionMetadata

logger = logging.getLogger(__name__)

_BATCHES_PER_SLICE: Final = 500
"""So many batches are loaded at a time; then others get their turn on the loop."""
_TOMBSTONES_PER_BATCH: Final = 1000

_APPEND_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a failed append means to a producer."""


@dataclass(eq=False, slots=True)
class Coordinated:
    """One partition of the log under one coordinator epoch; a new object for every epoch."""

    partition: int
    coordinator_epoch: int
    transactions: dict[str, Transaction] = field(default_factory=dict)
    is_loading: bool = True


class TransactionLog:
    """Finds transactions, stores what is pending, loads and unloads partitions.

    Field `_coordinated`: by partition. Invariant: one epoch of each at most, the newest.
    """

    def __init__(self, topic: TransactionTopic, clock: Clock) -> None:
        self._topic = topic
        self._clock = clock
        self._coordinated: dict[int, Coordinated] = {}

    # --- finding ----------------------------------------------------------------------------------

    @property
    def is_loading(self) -> bool:
        """Whether some partition is not known completely yet."""
        return any(coordinated.is_loading for coordinated in self._coordinated.values())

    def partition_for(self, transactional_id: str) -> int:
        """The partition whose leader coordinates this transactional id."""
        return partition_for(transactional_id, self._topic.num_partitions)

    def coordinated(self, transactional_id: str) -> Coordinated:
        """Where a transactional id is, or would be.

        NOT_COORDINATOR if another broker coordinates it, COORDINATOR_LOAD_IN_PROGRESS if this one
        does not know yet what the log says.
        """
        found = self._coordinated.get(self.partition_for(transactional_id))
        if found is None:
            raise ApiError(
                ErrorCode.NOT_COORDINATOR, f"{transactional_id} is coordinated by another broker"
            )
        if found.is_loading:
            raise ApiError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"__transaction_state-{found.partition} is being loaded",
            )
        return found

    def is_current(self, coordinated: Coordinated) -> bool:
        """Whether it is still this one that coordinates."""
        return self._coordinated.get(coordinated.partition) is coordinated

    def all_coordinated(self) -> list[Coordinated]:
        """Every partition that is loaded."""
        return [found for found in self._coordinated.values() if not found.is_loading]

    def transactions(self) -> Iterator[Transaction]:
        """Every transactional id this broker coordinates."""
        for coordinated in self.all_coordinated():
            yield from coordinated.transactions.values()

    # --- storing ----------------------------------------------------------------------------------

    async def store(
        self, coordinated: Coordinated, transaction: Transaction, *, keep_pending: bool = False
    ) -> None:
        """Append what is pending, then make it current.

        ApiError, in a coordinator's codes, if it could not be stored; the transaction may then
        change again, unless `keep_pending`: the caller goes on trying.
        """
        self._check_current(coordinated)
        assert transaction.pending is not None  # noqa: S101
        batch = build_transaction_batch(
            transaction.transactional_id, transaction.pending, self._clock.now_ms()
        )
        is_stored = False
        try:
            await self._topic.append(coordinated.partition, batch)
            is_stored = True
        except ApiError as error:
            code = _APPEND_ERRORS.get(error.code, error.code)
            raise ApiError(code, error.message) from error
        finally:
            if not is_stored and not keep_pending:
                transaction.abandon_transition()
        self._check_current(coordinated)
        transaction.complete_transition()

    def _check_current(self, coordinated: Coordinated) -> None:
        if not self.is_current(coordinated):
            raise ApiError(
                ErrorCode.NOT_COORDINATOR,
                f"__transaction_state-{coordinated.partition}: coordinator epoch "
                f"{coordinated.coordinator_epoch} is over",
            )

    async def forget(self, coordinated: Coordinated, expired: list[Transaction]) -> None:
        """Write the tombstones of transactional ids, which are gone when this returns.

        What cannot be stored stays, and may be tried again.
        """
        for start in range(0, len(expired), _TOMBSTONES_PER_BATCH):
            await self._forget(coordinated, expired[start : start + _TOMBSTONES_PER_BATCH])

    async def _forget(self, coordinated: Coordinated, expired: list[Transaction]) -> None:
        for transaction in expired:
            transaction.prepare_dead()
        ids = [transaction.transactional_id for transaction in expired]
        try:
            await self._topic.append(
                coordinated.partition, build_tombstones(ids, self._clock.now_ms())
            )
        except ApiError as error:
            logger.warning(
                "cannot forget expired transactional ids partition=%s count=%s: %s",
                coordinated.partition,
                len(ids),
                error,
            )
            for transaction in expired:
                transaction.abandon_transition()
            return
        for transactional_id in ids:
            del coordinated.transactions[transactional_id]

    # --- loading ----------------------------------------------------------------------------------

    async def load(self, partition: int, coordinator_epoch: int) -> Coordinated | None:
        """Coordinate a partition from now on; None if it is not news, or no longer so at the end.

        Until the log is read, its transactional ids are answered COORDINATOR_LOAD_IN_PROGRESS. A
        log that cannot be read is not coordinated: better no answer than a forgetful one.
        """
        known = self._coordinated.get(partition)
        if known is not None and known.coordinator_epoch >= coordinator_epoch:
            return None
        coordinated = Coordinated(partition, coordinator_epoch)
        self._coordinated[partition] = coordinated
        try:
            metadata = await self._read(coordinated)
        except ApiError as error:
            logger.error("cannot load transactions partition=%s: %s", partition, error)
            self.unload(partition, coordinator_epoch)
            return None
        if not self.is_current(coordinated):
            return None
        coordinated.transactions = {
            name: Transaction(name, stored) for name, stored in metadata.items()
        }
        coordinated.is_loading = False
        logger.debug("loaded transactions partition=%s count=%s", partition, len(metadata))
        return coordinated

    async def _read(self, coordinated: Coordinated) -> dict[str, TransactionMetadata]:
        metadata: dict[str, TransactionMetadata] = {}
        where = f"__transaction_state-{coordinated.partition}"
        for number, batch in enumerate(self._topic.read(coordinated.partition), start=1):
            for offset, _, key, value, _ in batch.record_tuples():
                _apply(metadata, key, value, f"{where} offset {offset}")
            if number % _BATCHES_PER_SLICE == 0:
                await asyncio.sleep(0)
                if not self.is_current(coordinated):
                    break
        return metadata

    def unload(self, partition: int, coordinator_epoch: int | None = None) -> None:
        """Coordinate it no longer; with an epoch, only if what is known is not newer."""
        found = self._coordinated.get(partition)
        if found is None:
            return
        if coordinator_epoch is None or found.coordinator_epoch <= coordinator_epoch:
            del self._coordinated[partition]
            logger.debug("unloaded transactions partition=%s", partition)

    def clear(self) -> None:
        """Coordinate nothing any more."""
        self._coordinated.clear()


def _apply(
    metadata: dict[str, TransactionMetadata], key: bytes | None, value: bytes | None, where: str
) -> None:
    """The last record of a transactional id counts, null takes it away.

    One record that cannot be read costs that record; the others must not be lost for it.
    """
    try:
        transactional_id = read_key(key)
        if transactional_id is None:
            logger.warning("ignored a record of an unknown kind: %s", where)
        elif value is None:
            metadata.pop(transactional_id, None)
        else:
            metadata[transactional_id] = read_value(value)
    except CorruptRecord as error:
        logger.error("ignored an unreadable record: %s: %s", where, error)
