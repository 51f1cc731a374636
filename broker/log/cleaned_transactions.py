"""Which batches and markers of transactions the cleaner may drop.

Records of aborted transactions are removed at once. A commit or abort marker is removed when no
record of its transaction is left before it, but not before consumers have had `delete.retention.ms`
to read it: the delete horizon in the batch says when that is over (KIP-534).
"""

from heapq import heappop, heappush

from broker.log.markers import read_end_txn_marker
from broker.log.transaction_index import AbortedTxn, TransactionIndex
from broker.records.batch import Batch


class CleanedTransactions:
    """Follows the cleaner, batch by batch in the order of offsets.

    Field `cleaned_index`: gets the aborted transactions of which batches were seen; None while
      only the offset map is being built.
    Field `_open_aborted`: producer id → its aborted transaction at this point, and whether a batch
      of it was seen.
    """

    __slots__ = ("_aborted", "_open_aborted", "_open_committed", "cleaned_index")

    def __init__(self) -> None:
        self._aborted: list[tuple[int, AbortedTxn]] = []
        self._open_aborted: dict[int, tuple[AbortedTxn, bool]] = {}
        self._open_committed: set[int] = set()
        self.cleaned_index: TransactionIndex | None = None

    def add_aborted(self, txns: list[AbortedTxn]) -> None:
        """Add the aborted transactions of the next range of offsets."""
        for txn in txns:
            heappush(self._aborted, (txn.first_offset, txn))

    def can_discard(self, batch: Batch) -> bool:
        """Whether transactions no longer need the batch; call once per batch, in order."""
        while self._aborted and self._aborted[0][0] <= batch.last_offset:
            txn = heappop(self._aborted)[1]
            self._open_aborted.setdefault(txn.producer_id, (txn, False))
        if batch.is_control:
            return self._can_discard_marker(batch)
        return self._can_discard_data(batch)

    def _can_discard_data(self, batch: Batch) -> bool:
        if not batch.header.is_transactional:
            return False
        producer_id = batch.header.producer_id
        aborted = self._open_aborted.get(producer_id)
        if aborted is None:
            self._open_committed.add(producer_id)
            return False
        self._open_aborted[producer_id] = (aborted[0], True)
        return True

    def _can_discard_marker(self, batch: Batch) -> bool:
        producer_id = batch.header.producer_id
        if not batch.header.records_count:
            return True
        marker = read_end_txn_marker(batch)
        if marker is None:
            return False
        if marker.is_commit:
            was_open = producer_id in self._open_committed
            self._open_committed.discard(producer_id)
            return not was_open
        txn, was_seen = self._open_aborted.pop(producer_id, (None, False))
        if txn is None or not was_seen:
            return True
        if self.cleaned_index is not None:
            self.cleaned_index.append(txn)
        return False
