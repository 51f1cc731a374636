"""What producers and operators ask of the transaction coordinator.

Requests of one transactional id are kept apart by its pending state, not by locks: whoever comes
while a change is being stored is told CONCURRENT_TRANSACTIONS and comes again. A change that has
begun is finished even if the client that asked for it hangs up: it runs in a task of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any, NamedTuple, TypeVar

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.txn.completion import Completion, Sleep
from broker.txn.config import TxnConfig
from broker.txn.producer_ids import ProducerIdManager
from broker.txn.states import BY_KAFKA_NAME, EMPTY, ENDING, TransactionState
from broker.txn.storage import MarkerChannel, ProducerIdBlocks, TransactionTopic
from broker.txn.transaction import ProducerIdAndEpoch, Transaction, TransactionMetadata
from broker.txn.transaction_log import Coordinated, TransactionLog

logger = logging.getLogger(__name__)

T = TypeVar("T")


class TransactionFilter(NamedTuple):
    """Which transactions to list; empty sets and a negative duration let everything pass."""

    state_names: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    """Only those that began longer ago (KIP-994)."""


class TransactionListing(NamedTuple):
    """One line of a list of transactions."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionCoordinator:
    """The coordinator of the transactional ids whose partition this broker leads.

    Field `_is_active`: whether decided ends are carried out; see `start`.
    Field `_tasks`: all work under way. Invariant: whatever breaks in them is logged.
    """

    def __init__(
        self,
        config: TxnConfig,
        topic: TransactionTopic,
        markers: MarkerChannel,
        producer_ids: ProducerIdBlocks,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.config = config
        self._clock = clock
        self._log = TransactionLog(topic, clock)
        self._completion = Completion(self._log, markers, clock, sleep)
        self._producer_ids = ProducerIdManager(producer_ids)
        self._is_active = False
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to complete what was decided, and to look for what has timed out or expired.

        From here on a partition that the metadata does not have counts as deleted; so all topics
        must be known. Partitions may be loaded before.
        """
        self._is_active = True
        for coordinated in self._log.all_coordinated():
            self._complete_decided(coordinated)
        config = self.config
        self._run(
            self._every(
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                self.abort_timed_out_transactions,
            )
        )
        self._run(
            self._every(
                config.transaction_remove_expired_transaction_cleanup_interval_ms,
                self.remove_expired_transactional_ids,
            )
        )

    async def stop(self) -> None:
        """Coordinate nothing any more; what is under way is left to the next coordinator."""
        self._log.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def on_election(self, partition: int, coordinator_epoch: int) -> "asyncio.Task[None]":
        """This broker leads a partition of the transaction topic; the task ends when it is loaded.

        Ends that were decided but not carried out are carried out now.
        """
        return self._run(self._load(partition, coordinator_epoch))

    def on_resignation(self, partition: int, coordinator_epoch: int | None = None) -> None:
        """This broker does not lead it any more (without an epoch: it has no replica of it)."""
        self._log.unload(partition, coordinator_epoch)

    async def _load(self, partition: int, coordinator_epoch: int) -> None:
        coordinated = await self._log.load(partition, coordinator_epoch)
        if coordinated is not None and self._is_active:
            self._complete_decided(coordinated)

    def _complete_decided(self, coordinated: Coordinated) -> None:
        for transaction in coordinated.transactions.values():
            if transaction.current.state in ENDING:
                self._run(self._completion.begin(coordinated, transaction))

    def partition_for(self, transactional_id: str) -> int:
        """The partition whose leader coordinates this transactional id."""
        return self._log.partition_for(transactional_id)

    # --- producers --------------------------------------------------------------------------------

    async def init_producer_id(
        self,
        transactional_id: str | None,
        txn_timeout_ms: int,
        expected: ProducerIdAndEpoch | None = None,
    ) -> ProducerIdAndEpoch:
        """A producer id and epoch, with which all producers before are fenced.

        Without a transactional id simply a new producer id. An open transaction is aborted first:
        CONCURRENT_TRANSACTIONS, and the client asks again.
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
        coordinated, transaction = await self._find_or_add(transactional_id, txn_timeout_ms)
        new_producer_id = None
        if transaction.needs_new_producer_id(expected):
            new_producer_id = await self._producer_ids.generate()
        target = transaction.prepare_init_producer_id(
            txn_timeout_ms, expected, self._clock.now_ms(), new_producer_id
        )
        if target.state != EMPTY:
            await self._finish(self._end(coordinated, transaction))
            raise ApiError(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"{transactional_id}: an open transaction is being aborted first",
            )
        await self._finish(self._log.store(coordinated, transaction))
        return ProducerIdAndEpoch(target.producer_id, target.producer_epoch)

    async def _find_or_add(
        self, transactional_id: str, txn_timeout_ms: int
    ) -> tuple[Coordinated, Transaction]:
        coordinated = self._log.coordinated(transactional_id)
        if transactional_id not in coordinated.transactions:
            producer_id = await self._producer_ids.generate()
            # Leadership may have moved meanwhile, or another request have been quicker.
            coordinated = self._log.coordinated(transactional_id)
            created = TransactionMetadata(producer_id, txn_timeout_ms, self._clock.now_ms())
            coordinated.transactions.setdefault(
                transactional_id, Transaction(transactional_id, created)
            )
        return coordinated, coordinated.transactions[transactional_id]

    async def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> None:
        """Make partitions part of the transaction, beginning one if none is open."""
        coordinated, transaction = self._find(transactional_id)
        now_ms = self._clock.now_ms()
        if transaction.prepare_add_partitions(producer, tuple(partitions), now_ms) is not None:
            await self._finish(self._log.store(coordinated, transaction))

    def verify_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Which of these partitions are part of the producer's open transaction (KIP-890)."""
        _, transaction = self._find(transactional_id)
        return transaction.check_partitions(producer, tuple(partitions))

    async def end_transaction(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool
    ) -> None:
        """Commit or abort. Returns when that is decided for good; markers follow by themselves."""
        coordinated, transaction = self._find(transactional_id)
        now_ms = self._clock.now_ms()
        if transaction.prepare_end(producer, commit=commit, now_ms=now_ms) is not None:
            await self._finish(self._end(coordinated, transaction))

    def _find(self, transactional_id: str) -> tuple[Coordinated, Transaction]:
        """A transactional id that a producer has been given; INVALID_PRODUCER_ID_MAPPING if not."""
        _check_transactional_id(transactional_id)
        coordinated = self._log.coordinated(transactional_id)
        transaction = coordinated.transactions.get(transactional_id)
        if transaction is None:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id} is not known"
            )
        return coordinated, transaction

    async def _end(self, coordinated: Coordinated, transaction: Transaction) -> None:
        await self._log.store(coordinated, transaction)
        self._run(self._completion.begin(coordinated, transaction))

    # --- time -------------------------------------------------------------------------------------

    async def abort_timed_out_transactions(self) -> None:
        """Fence the producers of transactions that were open for too long, and abort them."""
        now_ms = self._clock.now_ms()
        await asyncio.gather(
            *(
                self._abort_timed_out(coordinated, transaction)
                for coordinated in self._log.all_coordinated()
                for transaction in coordinated.transactions.values()
                if transaction.is_timed_out(now_ms)
            )
        )

    async def _abort_timed_out(self, coordinated: Coordinated, transaction: Transaction) -> None:
        try:
            transaction.prepare_fenced_abort(self._clock.now_ms())
            await self._end(coordinated, transaction)
        except ApiError as error:
            logger.warning(
                "cannot abort a timed out transaction transactional_id=%s: %s",
                transaction.transactional_id,
                error,
            )
        else:
            logger.info(
                "aborted a timed out transaction transactional_id=%s", transaction.transactional_id
            )

    async def remove_expired_transactional_ids(self) -> None:
        """Forget transactional ids that were not used for `transactional.id.expiration.ms`."""
        now_ms = self._clock.now_ms()
        expiration_ms = self.config.transactional_id_expiration_ms
        for coordinated in self._log.all_coordinated():
            expired = [
                transaction
                for transaction in coordinated.transactions.values()
                if transaction.is_expired(now_ms, expiration_ms)
            ]
            await self._log.forget(coordinated, expired)

    # --- operators --------------------------------------------------------------------------------

    def list_transactions(self, wanted: TransactionFilter) -> list[TransactionListing]:
        """The transactions that pass the filter; COORDINATOR_LOAD_IN_PROGRESS while some load."""
        if self._log.is_loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        states = {BY_KAFKA_NAME[name] for name in wanted.state_names & BY_KAFKA_NAME.keys()}
        now_ms = self._clock.now_ms()
        return [
            TransactionListing(found.transactional_id, known.producer_id, known.state)
            for found in self._log.transactions()
            if (known := found.current)
            and (not wanted.producer_ids or known.producer_id in wanted.producer_ids)
            and (not wanted.state_names or known.state in states)
            and (wanted.duration_ms < 0 or now_ms - known.txn_start_timestamp > wanted.duration_ms)
        ]

    def describe_transaction(self, transactional_id: str) -> TransactionMetadata:
        """What is known of a transactional id; TRANSACTIONAL_ID_NOT_FOUND if nothing is."""
        _check_transactional_id(transactional_id)
        coordinated = self._log.coordinated(transactional_id)
        transaction = coordinated.transactions.get(transactional_id)
        if transaction is None:
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"{transactional_id} is not known")
        return transaction.current

    # --- tasks ------------------------------------------------------------------------------------

    async def _finish(self, change: Coroutine[Any, Any, T]) -> T:
        """Await a change that goes on even if the one who awaits it is cancelled."""
        return await asyncio.shield(self._run(change))

    async def _every(
        self, interval_ms: int, sweep: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            await asyncio.wait([self._run(sweep())])  # a sweep that breaks is not the last one

    def _run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ApiError):
            logger.error("transaction coordinator: a task broke", exc_info=error)


def _check_transactional_id(transactional_id: str) -> None:
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
