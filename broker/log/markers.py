"""The control record that ends a transaction: the fields that the log reads."""

from typing import NamedTuple

from broker.records.batch import Batch
from broker.records.control import ControlRecordType, control_type, read_end_transaction_marker


class EndTxnMarker(NamedTuple):
    """How a transaction ended, in which epoch of its coordinator, and when."""

    is_commit: bool
    coordinator_epoch: int
    timestamp: int


def read_end_txn_marker(batch: Batch) -> EndTxnMarker | None:
    """The marker in a control batch; None for an emptied batch and for other control records."""
    if not batch.header.records_count:
        return None
    _, timestamp, key, value, _ = batch.record_tuples()[0]
    if control_type(key) not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    marker = read_end_transaction_marker(key, value)
    is_commit = marker.control_type is ControlRecordType.COMMIT
    return EndTxnMarker(is_commit, marker.coordinator_epoch, timestamp)
