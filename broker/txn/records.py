"""The records of `__transaction_state`, as Kafka 3.9 writes them.

    key                             value (null: forget it)
    int16 0 · transactional id      int16 0 · producer id and epoch, timeout, state, partitions by
                                              topic (null in Empty), last update, start

Value version 1 is flexible: a KRaft cluster writes it once `transaction.version` is raised. It is
read, but its tagged fields are of no use here. The topic is never compressed.
"""

import struct
from collections.abc import Iterable
from typing import Final, TypeVar

from broker.errors import CorruptRecord
from broker.model import TopicPartition
from broker.protocol.codec import decode, encode
from broker.protocol.errors import DecodeError
from broker.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from broker.protocol.schema import Message
from broker.records.builder import build_batch
from broker.txn.states import EMPTY, TransactionState
from broker.txn.transaction import TransactionMetadata

MessageT = TypeVar("MessageT", bound=Message)

_VERSION: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0
_VALUE_VERSION: Final = 0


def transaction_key(transactional_id: str) -> bytes:
    """The key under which a transactional id is kept."""
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(_KEY_VERSION) + encode(key, _KEY_VERSION)


def transaction_value(metadata: TransactionMetadata) -> bytes:
    """What is stored of it."""
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
    return _VERSION.pack(_VALUE_VERSION) + encode(value, _VALUE_VERSION)


def build_transaction_batch(
    transactional_id: str, metadata: TransactionMetadata, timestamp_ms: int
) -> bytes:
    """The batch that stores a transactional id."""
    key = transaction_key(transactional_id)
    return build_batch([(0, timestamp_ms, key, transaction_value(metadata), ())])


def build_tombstones(transactional_ids: Iterable[str], timestamp_ms: int) -> bytes:
    """The batch that forgets these transactional ids, at least one."""
    return build_batch(
        (number, timestamp_ms, transaction_key(transactional_id), None, ())
        for number, transactional_id in enumerate(transactional_ids)
    )


def read_key(data: bytes | None) -> str | None:
    """The transactional id a record is about; None for a key newer than this."""
    version = _version(data)
    if data is None or version != _KEY_VERSION:
        return None
    return _body(TransactionLogKey, data, version).transactional_id


def read_value(data: bytes) -> TransactionMetadata:
    """What was stored; CorruptRecord if it cannot be understood."""
    value = _body(TransactionLogValue, data, _version(data))
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


def _version(data: bytes | None) -> int:
    if data is None or len(data) < _VERSION.size:
        raise CorruptRecord(f"transaction record: expected a version, found {data!r}")
    (version,) = _VERSION.unpack_from(data)
    return int(version)


def _body(cls: type[MessageT], data: bytes, version: int) -> MessageT:
    try:
        return decode(cls, memoryview(data)[_VERSION.size :], version)
    except DecodeError as error:
        raise CorruptRecord(f"transaction record: {error}") from error
