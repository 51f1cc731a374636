"""Completes transactions: writes a marker to every partition, then CompleteCommit or CompleteAbort.

One task per transaction in PrepareCommit or PrepareAbort. It retries until the transaction is
complete or this broker no longer coordinates it; then the next coordinator finds the prepared state
in the log and starts again. A marker may therefore be written twice; the second one has no effect.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.txn.states import PREPARE_COMMIT
from broker.txn.storage import MarkerChannel, TxnMarker
from broker.txn.transaction import Transaction
from broker.txn.transaction_state_manager import TransactionStateManager, TxnMetadataCacheEntry

logger = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]

_FIRST_BACKOFF_S: Final = 0.02
_MAX_BACKOFF_S: Final = 1.0

_WRITTEN: Final = frozenset(
    {
        ErrorCode.NONE,
        # A log in an old message format has no transactions, so there is nothing to end.
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
"""All other errors are final. A newer producer or coordinator epoch means that another coordinator
has ended the transaction; the others are not expected, and a retry would not help."""


class MarkerRejected(ApiError):
    """The leader of a partition rejects this marker permanently."""


class Completion:
    """Writes markers and stores the final state; see the module."""

    def __init__(
        self,
        state_manager: TransactionStateManager,
        channel: MarkerChannel,
        clock: Clock,
        sleep: Sleep,
    ) -> None:
        self._state_manager = state_manager
        self._channel = channel
        self._clock = clock
        self._sleep = sleep

    def begin(
        self, entry: TxnMetadataCacheEntry, transaction: Transaction
    ) -> Coroutine[Any, Any, None]:
        """Set the pending final state now; the caller must run the returned coroutine."""
        current = transaction.current
        commit = current.state == PREPARE_COMMIT
        marker = TxnMarker(
            current.producer_id, current.producer_epoch, entry.coordinator_epoch, commit
        )
        transaction.prepare_complete(self._clock.now_ms())
        return self._run(entry, transaction, marker)

    async def _run(
        self, entry: TxnMetadataCacheEntry, transaction: Transaction, marker: TxnMarker
    ) -> None:
        """Return when the transaction is complete or this broker no longer coordinates it."""
        backoff_s = _FIRST_BACKOFF_S
        while self._state_manager.is_current(entry):
            try:
                if await self._write_markers(entry, transaction, marker):
                    await self._state_manager.store(entry, transaction, keep_pending=True)
                    return
            except MarkerRejected as error:
                logger.error(
                    "cannot complete the transaction, a marker was rejected marker=%s: %s",
                    marker,
                    error,
                )
                return
            except ApiError as error:
                logger.warning(
                    "cannot complete the transaction yet, retrying marker=%s: %s", marker, error
                )
            await self._sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)

    async def _write_markers(
        self, entry: TxnMetadataCacheEntry, transaction: Transaction, marker: TxnMarker
    ) -> bool:
        """Write the missing markers; True when every partition has one. Deleted ones need none.

        MarkerRejected if a retry cannot succeed.
        """
        partitions = transaction.current.partitions
        wanted = [p for p in partitions if self._channel.has_partition(p)]
        results = await self._channel.write_markers(marker, wanted) if wanted else {}
        if not self._state_manager.is_current(entry):
            return False
        for partition, code in results.items():
            if code not in _WRITTEN and code not in _RETRIED:
                raise MarkerRejected(code, f"{partition}: {code.name}")
        failed = {partition for partition, code in results.items() if code in _RETRIED}
        transaction.remove_partitions(set(partitions) - failed)
        return not failed
