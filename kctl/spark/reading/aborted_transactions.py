"""read_committed: which batches belong to aborted transactions.

The rule of Kafka's consumer: an aborted transaction is known by its producer and its first offset.
From that offset on the producer's batches are aborted, until its abort marker is passed. Control
batches advance the position like data batches do: a read may begin at an abort marker, and a
transaction whose marker is the first batch read ends there.
"""

import heapq
from collections.abc import Iterable

from broker.records.batch import Batch, BatchHeader
from broker.records.control import ControlRecordType, control_type

UNKNOWN_END = 2**63 - 1
"""Last offset of an aborted transaction from a fetch response: only its marker ends it."""


class AbortedTransactions:
    """Decides for each batch of one read, in offset order, whether it was aborted.

    `_upcoming`: (first offset, last offset, producer id) of transactions not reached yet, a heap.
    `_aborting`: last offset by producer id. *Invariant*: holds exactly the producers whose aborted
    transaction began at or before the last batch seen and whose abort marker was not seen.
    """

    def __init__(self, transactions: Iterable[tuple[int, int, int]]) -> None:
        """`transactions` as (producer id, first offset, last offset), in any order."""
        self._upcoming = [(first, last, producer) for producer, first, last in transactions]
        heapq.heapify(self._upcoming)
        self._aborting: dict[int, int] = {}

    def hides(self, batch: Batch) -> bool:
        """Whether a read_committed consumer skips the batch; call it for every batch, in order.

        Control batches are always skipped.
        """
        header = batch.header
        self._advance(header)
        if header.is_control:
            self._end_transaction(batch)
            return True
        if not header.is_transactional or header.producer_id not in self._aborting:
            return False
        # An index entry gives the last offset. The marker may lie before the first batch read, for
        # example in the previous piece, so it cannot be relied on to end the transaction.
        if self._aborting[header.producer_id] >= header.base_offset:
            return True
        del self._aborting[header.producer_id]
        return False

    def _advance(self, header: BatchHeader) -> None:
        """Enter the transactions that begin at or before the end of this batch."""
        while self._upcoming and self._upcoming[0][0] <= header.last_offset:
            _, last_offset, producer_id = heapq.heappop(self._upcoming)
            known = self._aborting.get(producer_id, -1)
            self._aborting[producer_id] = max(known, last_offset)

    def _end_transaction(self, marker: Batch) -> None:
        """An abort marker ends its producer's aborted transaction."""
        if marker.header.producer_id not in self._aborting:
            return
        keys = marker.columns().keys()
        if keys and control_type(keys[0]) is ControlRecordType.ABORT:
            del self._aborting[marker.header.producer_id]
