"""Carries out what was decided: markers into every partition, then CompleteCommit or -Abort.

One task per transaction that is ending. It goes on until it is done or this broker no longer
coordinates the transaction: then the next coordinator finds the decision in the log and begins
again. A marker may so be written twice; a second one ends nothing and does no harm.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.txn.states import PREPARE_COMMIT
from broker.txn.storage import MarkerChannel, TxnMarker
from broker.txn.transaction import Transaction
from broker.txn.transaction_log import Coordinated, TransactionLog

logger = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]

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


class MarkerRefused(ApiError):
    """A leader will never take this marker."""


class Completion:
    """Completes transactions."""

    def __init__(
        self, log: TransactionLog, channel: MarkerChannel, clock: Clock, sleep: Sleep
    ) -> None:
        self._log = log
        self._channel = channel
        self._clock = clock
        self._sleep = sleep

    def begin(
        self, coordinated: Coordinated, transaction: Transaction
    ) -> Coroutine[Any, Any, None]:
        """Close the transaction to other changes, at once; what is returned has to be run."""
        current = transaction.current
        commit = current.state == PREPARE_COMMIT
        marker = TxnMarker(
            current.producer_id, current.producer_epoch, coordinated.coordinator_epoch, commit
        )
        transaction.prepare_complete(self._clock.now_ms())
        return self._run(coordinated, transaction, marker)

    async def _run(
        self, coordinated: Coordinated, transaction: Transaction, marker: TxnMarker
    ) -> None:
        """Returns when the transaction is complete, or is not this broker's to complete."""
        backoff_s = _FIRST_BACKOFF_S
        while self._log.is_current(coordinated):
            try:
                if await self._write_markers(coordinated, transaction, marker):
                    await self._log.store(coordinated, transaction, keep_pending=True)
                    return
            except MarkerRefused as error:
                logger.error("gave up completing a transaction %s: %s", marker, error)
                return
            except ApiError as error:
                logger.warning("cannot complete a transaction yet %s: %s", marker, error)
            await self._sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)

    async def _write_markers(
        self, coordinated: Coordinated, transaction: Transaction, marker: TxnMarker
    ) -> bool:
        """Whether every partition has its marker; a deleted one needs none.

        MarkerRefused if there is no sense in trying again.
        """
        partitions = transaction.current.partitions
        wanted = [p for p in partitions if self._channel.has_partition(p)]
        results = await self._channel.write_markers(marker, wanted) if wanted else {}
        if not self._log.is_current(coordinated):
            return False
        for partition, code in results.items():
            if code not in _WRITTEN and code not in _RETRIED:
                raise MarkerRefused(code, f"{partition}: {code.name}")
        left = {partition for partition, code in results.items() if code in _RETRIED}
        transaction.remove_partitions(set(partitions) - left)
        return not left
