"""The records of `__transaction_state`, as Kafka 3.9 writes them.

    key                             value (null: removed)
    int16 0 · transactional id      int16 0 · producer id and epoch, timeout, state, partitions by
                                              topic (null in Empty), last update, start

Value version 1 is flexible: a KRaft cluster writes it once `transaction.version` is raised. It is
read, but its tagged fields are ignored. The topic is never compressed.
"""

from typing import Final

from broker.errors import CorruptRecord
from broker.model import TopicPartition
from broker.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from broker.records.builder import build_batch
from broker.records.coordinator_records import decode_versioned, encode_versioned, read_version
from broker.txn.states import EMPTY, TransactionState
from broker.txn.transaction import TransactionMetadata

_KEY_VERSION: Final = 0
_VALUE_VERSION: Final = 0


def transaction_key(transactional_id: str) -> bytes:
    """The key of a transactional id."""
    return encode_versioned(TransactionLogKey(transactional_id=transactional_id), _KEY_VERSION)


def transaction_value(metadata: TransactionMetadata) -> bytes:
    """The stored part of the metadata."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in metadata.partitions:
        by_topic.setdefault(topic, []).append(partition)
    topics = [
        PartitionsSchema(topic=topic, partition_ids=partition_ids)
        for topic, partition_ids in by_topic.items()
    ]
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.txn_timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None if metadata.state == EMPTY else topics,
        transaction_last_update_timestamp_ms=metadata.txn_last_update_timestamp,
        transaction_start_timestamp_ms=metadata.txn_start_timestamp,
    )
    return encode_versioned(value, _VALUE_VERSION)


def build_transaction_batch(
    transactional_id: str, metadata: TransactionMetadata, timestamp_ms: int
) -> bytes:
    """The batch that stores the metadata of a transactional id."""
    key = transaction_key(transactional_id)
    return build_batch([(0, timestamp_ms, key, transaction_value(metadata), ())])


def read_key(data: bytes | None) -> str | None:
    """The transactional id of a record; None for a key version that is not known."""
    version = read_version(data)
    if data is None or version != _KEY_VERSION:
        return None
    return decode_versioned(TransactionLogKey, data, version).transactional_id


def read_value(data: bytes) -> TransactionMetadata:
    """The stored metadata; CorruptRecord if it cannot be decoded."""
    value = decode_versioned(TransactionLogValue, data, read_version(data))
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as error:
        raise CorruptRecord(f"transaction record: {error}") from error
    return TransactionMetadata(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        txn_timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=tuple(
            TopicPartition(schema.topic, partition)
            for schema in value.transaction_partitions or ()
            for partition in schema.partition_ids
        ),
        txn_last_update_timestamp=value.transaction_last_update_timestamp_ms,
        txn_start_timestamp=value.transaction_start_timestamp_ms,
    )
