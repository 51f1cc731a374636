"""The transactions that this broker coordinates, in memory and in `__transaction_state`.

The leader of a partition of that topic coordinates the transactional ids that hash to it; its
leader epoch is the coordinator epoch. Leadership may move during every await. After each one,
`is_current` is checked again, and the request is answered with NOT_COORDINATOR if it no longer
holds; a record that was appended then belongs to the next coordinator.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from broker.clock import Clock
from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.java_strings import partition_for
from broker.metrics.load_times import LoadTimes
from broker.records.coordinator_records import build_tombstones
from broker.replica.coordinator_topic import APPEND_ERRORS, CoordinatorTopic
from broker.txn.records import build_transaction_batch, read_key, read_value, transaction_key
from broker.txn.transaction import Transaction, TransactionMetadata

logger = logging.getLogger(__name__)

_BATCHES_PER_SLICE: Final = 500
"""Batches loaded before other tasks of the event loop get a turn."""
_TOMBSTONES_PER_BATCH: Final = 1000

_STORE_ERRORS: Final = {
    **APPEND_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a producer is answered when its transaction could not be stored."""


@dataclass(eq=False, slots=True)
class TxnMetadataCacheEntry:
    """One loaded partition under one coordinator epoch; every epoch gets a new object."""

    partition: int
    coordinator_epoch: int
    transactions: dict[str, Transaction] = field(default_factory=dict)
    is_loading: bool = True


class TransactionStateManager:
    """Finds transactions, stores pending changes, loads and unloads partitions.

    Field `_entries`: by partition. Invariant: only the newest coordinator epoch of each.
    """

    def __init__(self, topic: CoordinatorTopic, clock: Clock) -> None:
        self._topic = topic
        self._clock = clock
        self._entries: dict[int, TxnMetadataCacheEntry] = {}
        self.load_times = LoadTimes()

    # --- finding ----------------------------------------------------------------------------------

    @property
    def is_loading(self) -> bool:
        """Whether a partition is being loaded."""
        return any(entry.is_loading for entry in self._entries.values())

    def partition_for(self, transactional_id: str) -> int:
        """The partition whose leader coordinates this transactional id."""
        return partition_for(transactional_id, self._topic.num_partitions)

    def entry_for(self, transactional_id: str) -> TxnMetadataCacheEntry:
        """The entry that holds, or would hold, a transactional id.

        NOT_COORDINATOR if another broker coordinates it, COORDINATOR_LOAD_IN_PROGRESS while its
        partition is being loaded.
        """
        found = self._entries.get(self.partition_for(transactional_id))
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

    def is_current(self, entry: TxnMetadataCacheEntry) -> bool:
        """Whether this broker still coordinates the partition in this epoch."""
        return self._entries.get(entry.partition) is entry

    def loaded_entries(self) -> list[TxnMetadataCacheEntry]:
        """All partitions that are loaded."""
        return [found for found in self._entries.values() if not found.is_loading]

    def transactions(self) -> Iterator[Transaction]:
        """All transactions that this broker coordinates."""
        for entry in self.loaded_entries():
            yield from entry.transactions.values()

    # --- storing ----------------------------------------------------------------------------------

    async def store(
        self,
        entry: TxnMetadataCacheEntry,
        transaction: Transaction,
        *,
        keep_pending: bool = False,
    ) -> None:
        """Append the pending change, then make it current.

        ApiError, with a coordinator's error code, if it could not be stored. The pending change is
        then dropped, unless `keep_pending`: the caller retries.
        """
        self._check_current(entry)
        assert transaction.pending is not None  # noqa: S101
        batch = build_transaction_batch(
            transaction.transactional_id, transaction.pending, self._clock.now_ms()
        )
        is_stored = False
        try:
            await self._topic.append(entry.partition, batch)
            is_stored = True
        except ApiError as error:
            code = _STORE_ERRORS.get(error.code, error.code)
            raise ApiError(code, error.message) from error
        finally:
            if not is_stored and not keep_pending:
                transaction.abandon_transition()
        self._check_current(entry)
        transaction.complete_transition()

    def _check_current(self, entry: TxnMetadataCacheEntry) -> None:
        if not self.is_current(entry):
            raise ApiError(
                ErrorCode.NOT_COORDINATOR,
                f"__transaction_state-{entry.partition}: coordinator epoch "
                f"{entry.coordinator_epoch} has ended",
            )

    async def remove_expired(self, expiration_ms: int) -> None:
        """Write tombstones for the transactional ids that were not used for `expiration_ms`.

        Those that cannot be stored stay, and are tried again the next time.
        """
        for entry in self.loaded_entries():
            await self._remove_expired(entry, expiration_ms)

    async def _remove_expired(self, entry: TxnMetadataCacheEntry, expiration_ms: int) -> None:
        """Batch by batch; what has expired is determined again before each append.

        While an append is awaited, an id may come back into use, and the partition may move to
        another coordinator or to the next epoch of this one. A tombstone that was decided before
        would then remove an ongoing transaction.
        """
        while self.is_current(entry):
            now_ms = self._clock.now_ms()
            expired = [
                transaction
                for transaction in entry.transactions.values()
                if transaction.is_expired(now_ms, expiration_ms)
            ][:_TOMBSTONES_PER_BATCH]
            if not expired or not await self._store_tombstones(entry, expired):
                return

    async def _store_tombstones(
        self, entry: TxnMetadataCacheEntry, expired: list[Transaction]
    ) -> bool:
        """Remove transactional ids from the log and from memory; False if that failed.

        Pending until it is stored: requests that use one of the ids are refused meanwhile.
        """
        for transaction in expired:
            transaction.prepare_dead()
        ids = [transaction.transactional_id for transaction in expired]
        batch = build_tombstones(map(transaction_key, ids), self._clock.now_ms())
        is_stored = False
        try:
            await self._topic.append(entry.partition, batch)
            is_stored = True
        except ApiError as error:
            logger.warning(
                "cannot remove expired transactional ids partition=%s count=%s: %s",
                entry.partition,
                len(ids),
                error,
            )
        finally:
            if not is_stored:
                for transaction in expired:
                    transaction.abandon_transition()
        if is_stored:
            for transactional_id in ids:
                del entry.transactions[transactional_id]
        return is_stored

    # --- loading ----------------------------------------------------------------------------------

    async def load(self, partition: int, coordinator_epoch: int) -> TxnMetadataCacheEntry | None:
        """Load a partition; None if the epoch is not newer, or is outdated when loading ends.

        Until then its transactional ids are answered with COORDINATOR_LOAD_IN_PROGRESS. A partition
        that cannot be read is not coordinated: an incomplete state would lose transactions.
        """
        known = self._entries.get(partition)
        if known is not None and known.coordinator_epoch >= coordinator_epoch:
            return None
        entry = TxnMetadataCacheEntry(partition, coordinator_epoch)
        self._entries[partition] = entry
        started_ms = self._clock.now_ms()
        try:
            metadata = await self._read(entry)
        except Exception as error:  # a partition must not stay loading for ever
            is_expected = isinstance(error, ApiError)
            logger.error(
                "cannot load transactions partition=%s: %s",
                partition,
                error,
                exc_info=None if is_expected else error,
            )
            self.unload(partition, coordinator_epoch)
            return None
        if not self.is_current(entry):
            return None
        entry.transactions = {name: Transaction(name, stored) for name, stored in metadata.items()}
        entry.is_loading = False
        self.load_times.record(started_ms, self._clock.now_ms())
        logger.debug("loaded transactions partition=%s count=%s", partition, len(metadata))
        return entry

    async def _read(self, entry: TxnMetadataCacheEntry) -> dict[str, TransactionMetadata]:
        metadata: dict[str, TransactionMetadata] = {}
        where = f"__transaction_state-{entry.partition}"
        for number, batch in enumerate(self._topic.read(entry.partition), start=1):
            for offset, _, key, value, _ in batch.record_tuples():
                _apply(metadata, key, value, f"{where} offset {offset}")
            if number % _BATCHES_PER_SLICE == 0:
                await asyncio.sleep(0)
                if not self.is_current(entry):
                    break
        return metadata

    def unload(self, partition: int, coordinator_epoch: int | None = None) -> None:
        """Unload a partition; with an epoch, only if the loaded one is not newer."""
        found = self._entries.get(partition)
        if found is None:
            return
        if coordinator_epoch is None or found.coordinator_epoch <= coordinator_epoch:
            del self._entries[partition]
            logger.debug("unloaded transactions partition=%s", partition)

    def clear(self) -> None:
        """Unload all partitions."""
        self._entries.clear()


def _apply(
    metadata: dict[str, TransactionMetadata], key: bytes | None, value: bytes | None, where: str
) -> None:
    """Apply a record: the last one of a transactional id wins, a tombstone removes it.

    A record that cannot be decoded is logged and skipped, so that the others are still loaded.
    """
    try:
        transactional_id = read_key(key)
        if transactional_id is None:
            logger.warning("ignored record with an unknown key version: %s", where)
        elif value is None:
            metadata.pop(transactional_id, None)
        else:
            metadata[transactional_id] = read_value(value)
    except CorruptRecord as error:
        logger.error("ignored record that cannot be decoded: %s: %s", where, error)
