"""The producers of one log, its open transactions, and the snapshots of both.

Transactions are in two maps by first offset: `_ongoing` have no marker yet; `_unreplicated` have
one at or above the high watermark. The lowest first offset of both is the first unstable offset,
where a read_committed fetch ends.

A snapshot saves replaying the log. One is taken when a segment rolls and when the log closes; it is
named by the offset up to which (exclusive) it is valid. There is at most one per segment, and one
more for the log end.

`check` runs before the write and changes nothing; `append` records what was written. So a batch
that could not be written changes nothing here.
"""

import contextlib
import logging
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.log.config import ProducerStateConfig
from broker.log.files import FileSystem
from broker.log.layout import DELETED, SNAPSHOT, offset_file, parse_offset_file
from broker.log.markers import read_end_txn_marker
from broker.log.producer_entry import BatchMetadata, ProducerEntry
from broker.log.producer_snapshot import read_snapshot, write_snapshot
from broker.log.transaction_index import AbortedTxn
from broker.records.batch import Batch, BatchHeader
from broker.records.layout import CONTROL_MASK, TRANSACTIONAL_MASK

logger = logging.getLogger(__name__)


class CompletedTxn(NamedTuple):
    """A transaction whose marker, at `last_offset`, has been written."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class VerificationGuard:
    """Proof that the coordinator has confirmed the transaction (KIP-890).

    The object itself is the guard: the append must pass the one that is stored for its producer.
    """

    __slots__ = ("lowest_sequence", "producer_epoch", "started_ms")

    def __init__(self, started_ms: int, lowest_sequence: int, producer_epoch: int) -> None:
        self.started_ms = started_ms
        self.lowest_sequence = lowest_sequence
        self.producer_epoch = producer_epoch


class ProducerState:
    """The producer state of one log.

    Field `map_end_offset`: Invariant: every batch below it is included in this state.
    Field `_last_snapshot_offset`: no snapshot is needed at or below it.
    """

    __slots__ = (
        "_config",
        "_fs",
        "_last_snapshot_offset",
        "_ongoing",
        "_snapshots",
        "_unreplicated",
        "_verifications",
        "directory",
        "map_end_offset",
        "producers",
    )

    def __init__(self, directory: Path, config: ProducerStateConfig, fs: FileSystem) -> None:
        self.directory = directory
        self._config = config
        self._fs = fs
        self.producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}  # first offset → producer id, in the order of offsets
        self._unreplicated: dict[int, int] = {}  # first offset → offset of the marker
        self._verifications: dict[int, VerificationGuard] = {}
        self._snapshots: set[int] = set()
        self._last_snapshot_offset = 0
        self.map_end_offset = 0

    # --- checking and noting batches -----------------------------------------------------------

    def is_next(self, header: BatchHeader) -> bool:
        """Whether the batch continues its producer's last one, so that no check can fail."""
        entry = self.producers.get(header.producer_id)
        return entry is not None and entry.is_next(
            header.producer_epoch, header.base_sequence, header.attributes
        )

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch that this one repeats; None if it is new."""
        entry = self.producers.get(header.producer_id)
        return entry.find_duplicate(header) if entry else None

    def check(
        self, batch: Batch, verification: VerificationGuard | None, *, is_client: bool
    ) -> None:
        """Check a batch with a producer id before it is written; ApiError if it must be refused."""
        header = batch.header
        entry = self.producers.get(header.producer_id) or ProducerEntry(header.producer_id)
        entry.check_epoch(header.producer_epoch)
        if header.is_control:
            marker = read_end_txn_marker(batch)
            if marker is not None:
                entry.check_coordinator(marker.coordinator_epoch)
            return
        if header.is_transactional and entry.current_txn_first_offset is None:
            self._check_verified(header, verification)
        if is_client:
            entry.check_sequence(header)
        entry.check_transaction(header)

    def _check_verified(self, header: BatchHeader, verification: VerificationGuard | None) -> None:
        if not self._config.verify_transactions:
            return
        expected = self._verifications.get(header.producer_id)
        if expected is None or expected is not verification:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id}: the transaction was not verified",
            )
        if header.base_sequence > expected.lowest_sequence:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}: sequence {header.base_sequence} came before "
                f"{expected.lowest_sequence}, which is being verified",
            )

    def append(self, batch: Batch, header: BatchHeader) -> CompletedTxn | None:
        """Record a written batch; returns the transaction that it completes, if it is a marker.

        `header` is the one that was written, with its offset.
        """
        producer_id = header.producer_id
        if producer_id < 0:
            return None
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        if header.attributes & CONTROL_MASK:
            return self._append_marker(batch, header, entry)
        entry.add_batch(header)
        if header.attributes & TRANSACTIONAL_MASK:
            self._verifications.pop(producer_id, None)
            if entry.current_txn_first_offset is None:
                entry.current_txn_first_offset = header.base_offset
                self._ongoing[header.base_offset] = producer_id
        return None

    def _append_marker(
        self, batch: Batch, header: BatchHeader, entry: ProducerEntry
    ) -> CompletedTxn | None:
        marker = read_end_txn_marker(batch)
        if marker is None:  # the cleaner emptied the batch; the transaction ended long ago
            return None
        first_offset = entry.current_txn_first_offset
        entry.end_transaction(header.producer_epoch, marker.coordinator_epoch, marker.timestamp)
        self._verifications.pop(header.producer_id, None)
        if first_offset is None:
            return None
        return CompletedTxn(
            header.producer_id, first_offset, header.base_offset, not marker.is_commit
        )

    def complete(self, txn: CompletedTxn) -> AbortedTxn | None:
        """Remove a completed transaction from the ongoing ones; returns its index entry if aborted.

        Until the high watermark passes its marker it still counts as unstable.
        """
        del self._ongoing[txn.first_offset]
        self._unreplicated[txn.first_offset] = txn.last_offset
        if not txn.is_aborted:
            return None
        stable = next(iter(self._ongoing), txn.last_offset + 1)
        return AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, stable)

    def replay(self, batches: Iterable[tuple[int, Batch]]) -> None:
        """Record batches of a log that is being loaded; no index is written."""
        for _, batch in batches:
            txn = self.append(batch, batch.header)
            if txn is not None:
                self.complete(txn)

    # --- transactions --------------------------------------------------------------------------

    def first_unstable_offset(self) -> int | None:
        """The first offset of the ongoing and unreplicated transactions; None if all is stable."""
        if self._unreplicated:
            return min(min(self._unreplicated), next(iter(self._ongoing), 2**63))
        return next(iter(self._ongoing)) if self._ongoing else None

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Make the transactions stable whose marker is below the high watermark."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    def start_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, now_ms: int
    ) -> VerificationGuard:
        """The guard that a transaction's first append must pass; created by the first call."""
        found = self._verifications.get(producer_id)
        if found is None or found.producer_epoch < producer_epoch:
            found = VerificationGuard(now_ms, sequence, producer_epoch)
            self._verifications[producer_id] = found
        found.lowest_sequence = min(found.lowest_sequence, sequence)
        return found

    def remove_expired(self, now_ms: int) -> None:
        """Remove the producers that have expired, except those with an ongoing transaction."""
        limit_ms = now_ms - self._config.producer_id_expiration_ms
        for entry in list(self.producers.values()):
            if entry.current_txn_first_offset is None and entry.last_timestamp <= limit_ms:
                del self.producers[entry.producer_id]
        for producer_id, verification in list(self._verifications.items()):
            if verification.started_ms <= limit_ms:
                del self._verifications[producer_id]

    # --- snapshots -----------------------------------------------------------------------------

    @property
    def latest_snapshot_offset(self) -> int | None:
        """The offset of the newest snapshot; None if there are no snapshots."""
        return max(self._snapshots, default=None)

    def _path(self, offset: int) -> Path:
        return offset_file(self.directory, offset, SNAPSHOT)

    def load_snapshot_names(self, names: Iterable[str]) -> None:
        """Find the snapshots among the files of the directory."""
        parsed = map(parse_offset_file, names)
        self._snapshots = {file[0] for file in parsed if file and file[1:] == (SNAPSHOT, "")}

    def take_snapshot(self, *, sync: bool = True) -> Path | None:
        """Write a snapshot at `map_end_offset`, unless nothing has changed since the last one."""
        if self.map_end_offset <= self._last_snapshot_offset:
            return None
        path = self._path(self.map_end_offset)
        entries = [entry.to_snapshot() for _, entry in sorted(self.producers.items())]
        write_snapshot(path, entries, self._fs, sync=sync)
        self._snapshots.add(self.map_end_offset)
        self._last_snapshot_offset = self.map_end_offset
        return path

    def remove_stray_snapshots(self, base_offsets: Collection[int]) -> None:
        """Delete snapshots that belong to no segment, except the newest if it is beyond the last.

        That one is from a clean shutdown: it saves replaying the active segment.
        """
        stray = sorted(self._snapshots.difference(base_offsets))
        if stray and base_offsets and stray[-1] > max(base_offsets):
            stray.pop()
        for offset in stray:
            self._delete_snapshot(offset)

    def _delete_snapshot(self, offset: int) -> None:
        self._snapshots.discard(offset)
        self._fs.remove(self._path(offset))

    def mark_snapshots_deleted(self, offsets: Iterable[int]) -> list[Path]:
        """Rename the snapshots of deleted segments; returns the paths to remove later."""
        marked = []
        for offset in self._snapshots.intersection(offsets):
            self._snapshots.discard(offset)
            path = offset_file(self.directory, offset, SNAPSHOT, DELETED)
            with contextlib.suppress(FileNotFoundError):  # removed by an operator
                self._fs.rename(self._path(offset), path)
                marked.append(path)
        return marked

    # --- loading and truncating ----------------------------------------------------------------

    def _clear(self) -> None:
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Load the newest snapshot at or below `log_end_offset`; the rest must be replayed."""
        for offset in sorted(self._snapshots):
            if not log_start_offset < offset <= log_end_offset:
                self._delete_snapshot(offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._clear()
        self._load_latest_snapshot(log_start_offset, now_ms)

    def _load_latest_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        """Load the newest readable snapshot; damaged ones are deleted, the log can be replayed."""
        while (offset := self.latest_snapshot_offset) is not None:
            try:
                saved = read_snapshot(self._path(offset))
            except CorruptRecord as error:
                logger.warning("dropping producer snapshot: %s", error)
                self._delete_snapshot(offset)
                continue
            entries = [ProducerEntry.from_snapshot(entry) for entry in saved]
            self.producers = {entry.producer_id: entry for entry in entries}
            self.remove_expired(now_ms)
            self._ongoing = dict(
                sorted(
                    (entry.current_txn_first_offset, entry.producer_id)
                    for entry in self.producers.values()
                    if entry.current_txn_first_offset is not None
                )
            )
            self._last_snapshot_offset = self.map_end_offset = offset
            return
        self._last_snapshot_offset = self.map_end_offset = log_start_offset

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Remove the transactions that ended before the new log start offset."""
        self.on_high_watermark_updated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.latest_snapshot_offset
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything, including the snapshots."""
        self._clear()
        for snapshot in sorted(self._snapshots):
            self._delete_snapshot(snapshot)
        self._last_snapshot_offset = 0
        self.map_end_offset = offset
