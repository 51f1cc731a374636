"""read_committed: which batches belong to transactions that were aborted.

As Kafka's consumer does it: aborted transactions are known by producer and first offset; a producer
counts as aborting from that offset on until its abort marker goes by.
"""

import heapq
from collections.abc import Iterable

from broker.records.batch import Batch, BatchHeader
from broker.records.control import ControlRecordType, control_type


class AbortedTransactions:
    """Told of every batch of a span in order, it knows which of them are not to be seen."""

    def __init__(self, transactions: Iterable[tuple[int, int]]) -> None:
        """`transactions` as (producer id, first offset), in any order."""
        self._upcoming = [(first_offset, producer_id) for producer_id, first_offset in transactions]
        heapq.heapify(self._upcoming)
        self._aborting: set[int] = set()

    def hides(self, header: BatchHeader) -> bool:
        """Whether the batch was aborted; to be asked of every data batch, in order."""
        while self._upcoming and self._upcoming[0][0] <= header.last_offset:
            self._aborting.add(heapq.heappop(self._upcoming)[1])
        return header.is_transactional and header.producer_id in self._aborting

    def end_transaction(self, marker: Batch) -> None:
        """Take notice of a control batch: an abort marker ends what its producer aborted."""
        header = marker.header
        if header.producer_id not in self._aborting:
            return
        keys = marker.columns().keys()
        if keys and control_type(keys[0]) is ControlRecordType.ABORT:
            self._aborting.discard(header.producer_id)
