"""The operations of the transaction coordinator, for producers and for administrators.

Requests for one transactional id are serialized by its pending state, not by locks: a request that
arrives while a change is being stored gets CONCURRENT_TRANSACTIONS and is retried by the client. A
change runs in a task of its own, so that it is finished even if the client disconnects.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any, NamedTuple, TypeVar

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.replica.coordinator_topic import CoordinatorTopic
from broker.tasks import TaskSet
from broker.txn.completion import Completion, Sleep
from broker.txn.config import TxnConfig
from broker.txn.producer_ids import ProducerIdManager
from broker.txn.states import BY_KAFKA_NAME, EMPTY, ENDING, TransactionState
from broker.txn.storage import MarkerChannel, ProducerIdBlocks
from broker.txn.transaction import Transaction, TransactionMetadata
from broker.txn.transaction_state_manager import TransactionStateManager, TxnMetadataCacheEntry

logger = logging.getLogger(__name__)

T = TypeVar("T")


class TransactionFilter(NamedTuple):
    """Filters of ListTransactions; an empty set or a negative duration matches everything."""

    state_names: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    """Only transactions that started longer ago (KIP-994)."""


class TransactionListing(NamedTuple):
    """One transaction of a ListTransactions response."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionCoordinator:
    """The coordinator of the transactional ids whose partition this broker leads.

    Field `_is_active`: whether prepared transactions are completed; set by `start`.
    Field `_tasks`: all work in progress. Invariant: unexpected errors in them are logged.
    """

    def __init__(
        self,
        config: TxnConfig,
        topic: CoordinatorTopic,
        markers: MarkerChannel,
        producer_ids: ProducerIdBlocks,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.config = config
        self._clock = clock
        self._state_manager = TransactionStateManager(topic, clock)
        self.load_times = self._state_manager.load_times
        self._completion = Completion(self._state_manager, markers, clock, sleep)
        self._producer_ids = ProducerIdManager(producer_ids)
        self._is_active = False
        self._tasks = TaskSet("transaction coordinator", expects_api_errors=True)

    # --- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Complete prepared transactions; from now on abort timed-out ones, remove expired ids.

        From now on a partition that is not in the metadata counts as deleted, so all topics must be
        known. Partitions may be loaded before.
        """
        self._is_active = True
        for entry in self._state_manager.loaded_entries():
            self._complete_decided(entry)
        config = self.config
        self._tasks.spawn(
            self._every(
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                self.abort_timed_out_transactions,
            )
        )
        self._tasks.spawn(
            self._every(
                config.transaction_remove_expired_transaction_cleanup_interval_ms,
                self.remove_expired_transactional_ids,
            )
        )

    async def stop(self) -> None:
        """Unload everything; the next coordinator continues the work in progress."""
        self._state_manager.clear()
        await self._tasks.cancel()

    def on_election(self, partition: int, coordinator_epoch: int) -> "asyncio.Task[None]":
        """Load a partition of the transaction topic that this broker leads now.

        The task ends when it is loaded. Prepared transactions in it are completed.
        """
        return self._tasks.spawn(self._load(partition, coordinator_epoch))

    def on_resignation(self, partition: int, coordinator_epoch: int | None = None) -> None:
        """Unload a partition that this broker no longer leads (no epoch: it has no replica)."""
        self._state_manager.unload(partition, coordinator_epoch)

    async def _load(self, partition: int, coordinator_epoch: int) -> None:
        entry = await self._state_manager.load(partition, coordinator_epoch)
        if entry is not None and self._is_active:
            self._complete_decided(entry)

    def _complete_decided(self, entry: TxnMetadataCacheEntry) -> None:
        for transaction in entry.transactions.values():
            if transaction.current.state in ENDING:
                self._tasks.spawn(self._completion.begin(entry, transaction))

    def partition_for(self, transactional_id: str) -> int:
        """The partition whose leader coordinates this transactional id."""
        return self._state_manager.partition_for(transactional_id)

    # --- producers --------------------------------------------------------------------------------

    async def init_producer_id(
        self,
        transactional_id: str | None,
        txn_timeout_ms: int,
        expected: ProducerIdAndEpoch | None = None,
    ) -> ProducerIdAndEpoch:
        """Return a producer id and epoch; fences all earlier producers of the transactional id.

        Without a transactional id, a new producer id. An ongoing transaction is aborted first: the
        client gets CONCURRENT_TRANSACTIONS and retries.
        """
        if transactional_id is None:
            return ProducerIdAndEpoch(await self._producer_ids.generate(), 0)
        _check_transactional_id(transactional_id)
        if not 0 < txn_timeout_ms <= self.config.transaction_max_timeout_ms:
            raise ApiError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"{txn_timeout_ms} ms is not between 1 and transaction.max.timeout.ms="
                f"{self.config.transaction_max_timeout_ms}",
            )
        entry, transaction = await self._find_or_add(transactional_id, txn_timeout_ms)
        new_producer_id = None
        if transaction.needs_new_producer_id(expected):
            new_producer_id = await self._producer_ids.generate()
        target = transaction.prepare_init_producer_id(
            txn_timeout_ms, expected, self._clock.now_ms(), new_producer_id
        )
        if target.state != EMPTY:
            await self._finish(self._end(entry, transaction))
            raise ApiError(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"{transactional_id}: the ongoing transaction is being aborted",
            )
        await self._finish(self._state_manager.store(entry, transaction))
        return ProducerIdAndEpoch(target.producer_id, target.producer_epoch)

    async def _find_or_add(
        self, transactional_id: str, txn_timeout_ms: int
    ) -> tuple[TxnMetadataCacheEntry, Transaction]:
        entry = self._state_manager.entry_for(transactional_id)
        if transactional_id not in entry.transactions:
            producer_id = await self._producer_ids.generate()
            # Leadership may have moved, or another request may have added the id meanwhile.
            entry = self._state_manager.entry_for(transactional_id)
            created = TransactionMetadata(producer_id, txn_timeout_ms, self._clock.now_ms())
            entry.transactions.setdefault(transactional_id, Transaction(transactional_id, created))
        return entry, entry.transactions[transactional_id]

    async def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> None:
        """Add partitions to the transaction; starts one if none is ongoing."""
        entry, transaction = self._find(transactional_id)
        now_ms = self._clock.now_ms()
        if transaction.prepare_add_partitions(producer, tuple(partitions), now_ms) is not None:
            await self._finish(self._state_manager.store(entry, transaction))

    def verify_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Check which partitions are part of the producer's ongoing transaction (KIP-890)."""
        _, transaction = self._find(transactional_id)
        return transaction.check_partitions(producer, tuple(partitions))

    async def end_transaction(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool
    ) -> None:
        """Commit or abort. Returns when the decision is stored; markers are written afterwards."""
        entry, transaction = self._find(transactional_id)
        now_ms = self._clock.now_ms()
        if transaction.prepare_end(producer, commit=commit, now_ms=now_ms) is not None:
            await self._finish(self._end(entry, transaction))

    def _find(self, transactional_id: str) -> tuple[TxnMetadataCacheEntry, Transaction]:
        """The transaction of a known transactional id, else INVALID_PRODUCER_ID_MAPPING."""
        _check_transactional_id(transactional_id)
        entry = self._state_manager.entry_for(transactional_id)
        transaction = entry.transactions.get(transactional_id)
        if transaction is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id} is unknown")
        return entry, transaction

    async def _end(self, entry: TxnMetadataCacheEntry, transaction: Transaction) -> None:
        await self._state_manager.store(entry, transaction)
        self._tasks.spawn(self._completion.begin(entry, transaction))

    # --- time -------------------------------------------------------------------------------------

    async def abort_timed_out_transactions(self) -> None:
        """Abort the transactions past their timeout, and fence their producers."""
        now_ms = self._clock.now_ms()
        await asyncio.gather(
            *(
                self._abort_timed_out(entry, transaction)
                for entry in self._state_manager.loaded_entries()
                for transaction in entry.transactions.values()
                if transaction.is_timed_out(now_ms)
            )
        )

    async def _abort_timed_out(
        self, entry: TxnMetadataCacheEntry, transaction: Transaction
    ) -> None:
        # Runs as a task of its own: the transaction may have ended since it was found.
        if not transaction.is_timed_out(self._clock.now_ms()):
            return
        try:
            transaction.prepare_fenced_abort(self._clock.now_ms())
            await self._end(entry, transaction)
        except ApiError as error:
            logger.warning(
                "cannot abort timed-out transaction transactional_id=%s: %s",
                transaction.transactional_id,
                error,
            )
        else:
            logger.info(
                "aborted timed-out transaction transactional_id=%s", transaction.transactional_id
            )

    async def remove_expired_transactional_ids(self) -> None:
        """Remove transactional ids that were not used for `transactional.id.expiration.ms`."""
        await self._state_manager.remove_expired(self.config.transactional_id_expiration_ms)

    # --- operators --------------------------------------------------------------------------------

    def list_transactions(self, wanted: TransactionFilter) -> list[TransactionListing]:
        """The matching transactions; COORDINATOR_LOAD_IN_PROGRESS while a partition is loading."""
        if self._state_manager.is_loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        states = {BY_KAFKA_NAME[name] for name in wanted.state_names & BY_KAFKA_NAME.keys()}
        now_ms = self._clock.now_ms()
        return [
            TransactionListing(found.transactional_id, known.producer_id, known.state)
            for found in self._state_manager.transactions()
            if (known := found.current)
            and (not wanted.producer_ids or known.producer_id in wanted.producer_ids)
            and (not wanted.state_names or known.state in states)
            and (wanted.duration_ms < 0 or now_ms - known.txn_start_timestamp > wanted.duration_ms)
        ]

    def describe_transaction(self, transactional_id: str) -> TransactionMetadata:
        """The metadata of a transactional id; TRANSACTIONAL_ID_NOT_FOUND if it is unknown."""
        _check_transactional_id(transactional_id)
        entry = self._state_manager.entry_for(transactional_id)
        transaction = entry.transactions.get(transactional_id)
        if transaction is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"{transactional_id} is unknown")
        return transaction.current

    # --- tasks ------------------------------------------------------------------------------------

    async def _finish(self, change: Coroutine[Any, Any, T]) -> T:
        """Await a change that continues even if the caller is cancelled."""
        return await asyncio.shield(self._tasks.spawn(change))

    async def _every(
        self, interval_ms: int, sweep: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            await asyncio.wait(
                [self._tasks.spawn(sweep())]
            )  # one failure must not end the periodic work


def _check_transactional_id(transactional_id: str) -> None:
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
