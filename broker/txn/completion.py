"""Carries out what was decided: markers into every partition, then CompleteCommit or -Abort.

One task per transaction that is ending. It goes on until it is done or this broker no longer
coordinates the transaction: then the next coordinator finds the decision in the log and begins
again. A marker may so be written twice; a second one ends nothing and does no harm.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.txn.states import PREPARE_COMMIT
from broker.txn.storage import MarkerChannel, TxnMarker
from broker.txn.transaction import Transaction
from broker.txn.transaction_log import Coordinated, TransactionLog

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_S: Final = 0.02
_MAX_BACKOFF_S: Final = 1.0

_WRITTEN: Final = frozenset(
    {
        ErrorCode.NONE,
        # A log of the old formats has no transactions: nothing was written, nothing ends.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_RETRIED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""All others are final. A newer epoch of the producer or of the coordinator means that somebody
else has ended the transaction; the rest must not happen, and repeating would not help."""


class Completion:
    """Completes transactions."""

    def __init__(self, log: TransactionLog, channel: MarkerChannel, clock: Clock) -> None:
        self._log = log
        self._channel = channel
        self._clock = clock

    def begin(self, coordinated: Coordinated, transaction: Transaction) -> "CompletionTask":
        """Close the transaction to changes; what is returned then has to be run."""
        current = transaction.current
        commit = current.state == PREPARE_COMMIT
        marker = TxnMarker(
            current.producer_id, current.producer_epoch, coordinated.coordinator_epoch, commit
        )
        transaction.prepare_complete(self._clock.now_ms())
        return CompletionTask(self._log, self._channel, coordinated, transaction, marker)


class CompletionTask:
    """The completion of one transaction."""

    def __init__(
        self,
        log: TransactionLog,
        channel: MarkerChannel,
        coordinated: Coordinated,
        transaction: Transaction,
        marker: TxnMarker,
    ) -> None:
        self._log = log
        self._channel = channel
        self._coordinated = coordinated
        self._transaction = transaction
        self._marker = marker
        self._backoff_s = _FIRST_BACKOFF_S

    async def run(self) -> None:
        """Returns when the transaction is complete, or is not this broker's to complete."""
        if await self._write_markers():
            await self._store()

    async def _write_markers(self) -> bool:
        """Whether every partition has its marker; a deleted one needs none."""
        while True:
            deleted = [p for p in self._partitions if not self._channel.has_partition(p)]
            self._transaction.remove_partitions(deleted)
            if not self._partitions:
                return True
            results = await self._channel.write_markers(self._marker, self._partitions)
            if not self._log.is_current(self._coordinated):
                return False
            if not self._take(results):
                return False
            if self._partitions:
                await self._back_off()

    @property
    def _partitions(self) -> tuple[TopicPartition, ...]:
        return self._transaction.current.partitions

    def _take(self, results: Mapping[TopicPartition, ErrorCode]) -> bool:
        """Note what has its marker; False if there is no sense in going on."""
        written = {partition for partition, code in results.items() if code in _WRITTEN}
        self._transaction.remove_partitions(written)
        final = {
            str(partition): code.name
            for partition, code in results.items()
            if code not in _WRITTEN and code not in _RETRIED
        }
        if final:
            logger.error("gave up writing markers %s errors=%s", self._what(), final)
        return not final

    async def _store(self) -> None:
        """The last step: repeated while the log cannot be written."""
        while self._log.is_current(self._coordinated):
            try:
                await self._log.store(self._coordinated, self._transaction, keep_pending=True)
            except ApiError as error:
                if error.code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    logger.warning("cannot complete %s: %s", self._what(), error)
                    return
                await self._back_off()
            else:
                return

    async def _back_off(self) -> None:
        await asyncio.sleep(self._backoff_s)
        self._backoff_s = min(2 * self._backoff_s, _MAX_BACKOFF_S)

    def _what(self) -> str:
        return f"transactional_id={self._transaction.transactional_id} marker={self._marker}"
