"""Decoders for records of Kafka's internal topics: to JSON documents and to kafka-dump-log's text.

A key begins with a version that tells the type of the record; a value begins with a version of its
own. A record that cannot be decoded is shown with the reason, and the dump continues.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final, NamedTuple

from broker.log.layout import parse_partition_dir
from broker.model import TopicPartition
from broker.protocol.codec import decode, decode_from
from broker.protocol.errors import DecodeError
from broker.protocol.json_view import to_json
from broker.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from broker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from broker.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from broker.protocol.schema import Message
from kctl.dump.reading.kraft_records import SHARE_RECORDS, metadata_document, metadata_words
from kctl.views.kafka_text.java_order import partition_hash, table_order

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
METADATA_TOPIC: Final = "__cluster_metadata"
SHARE_TOPIC: Final = "__share_group_state"

_VERSION: Final = Struct(">h")
_CONSUMER_PROTOCOL: Final = "consumer"
_ESCAPE: Final = re.compile(r"\\(?:u00[01][0-9a-f]|.)")

_TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)

Document = dict[str, Any]


class UnknownRecordType(Exception):
    """The version of the key belongs to no known record type."""

    def __init__(self, record_type: int) -> None:
        super().__init__(f"unknown record type {record_type}")
        self.record_type = record_type


class Documents(NamedTuple):
    """A decoded record; a tombstone has no value, a record of the metadata log no key."""

    key: Document | None
    value: Document | None


class KafkaWords(NamedTuple):
    """A record as kafka-dump-log prints it; None is not printed."""

    key: str | None
    value: str | None


class Decoder(NamedTuple):
    """How the records of one internal topic are decoded."""

    documents: Callable[[bytes | None, bytes | None], Documents]
    """The decoded record; DecodeError or UnknownRecordType if it cannot be decoded."""
    kafka_words: Callable[[int, bytes | None, bytes | None], KafkaWords]
    """The text of the record at an offset; DecodeError only where kafka-dump-log fails too."""


def decoder_for(directory_name: str) -> Decoder | None:
    """The decoder for the topic of a partition directory; None for ordinary topics."""
    partition = parse_partition_dir(directory_name)
    return _BY_TOPIC.get(partition.topic) if partition else None


def decoded_record(
    topic: str, key: bytes | None, value: bytes | None
) -> tuple[Document | None, Document | None] | None:
    """Key and value of a record of an internal topic; None if they cannot be decoded."""
    decoder = _BY_TOPIC.get(topic)
    if decoder is None:
        return None
    try:
        return decoder.documents(key, value)
    except (DecodeError, UnknownRecordType):
        return None


def _read_version(data: bytes, name: str) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError(f"Could not read version from {name}'s buffer.")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _read(cls: type[Message], data: bytes, version: int, name: str) -> Message:
    """The message after the version; trailing bytes are ignored."""
    try:
        return decode_from(cls, data, _VERSION.size, version)[0]
    except DecodeError as error:
        raise DecodeError(
            f"Could not read record with version {version} from {name}'s buffer due to: {error}."
        ) from error


# --- __consumer_offsets ------------------------------------------------------------------------

_GROUP_RECORDS: Final[dict[int, tuple[type[Message], type[Message]]]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
}


def _group_documents(key: bytes | None, value: bytes | None) -> Documents:
    return _coordinator_documents(_GROUP_RECORDS, key, value)


def _share_documents(key: bytes | None, value: bytes | None) -> Documents:
    return _coordinator_documents(SHARE_RECORDS, key, value)


def _coordinator_documents(
    records: Mapping[int, tuple[type[Message], type[Message]]],
    key: bytes | None,
    value: bytes | None,
) -> Documents:
    """A record whose key and value begin with their versions, as coordinators write them."""
    if key is None:
        raise DecodeError("message had a missing key")
    record_type = _read_version(key, "key")
    if record_type not in records:
        raise UnknownRecordType(record_type)
    key_class, value_class = records[record_type]
    key_data = to_json(_read(key_class, key, record_type, "key"), record_type)
    key_document = {"type": str(record_type), "data": key_data}
    if value is None:
        return Documents(key_document, None)
    version = _read_version(value, "value")
    data = to_json(_read(value_class, value, version, "value"), version)
    if data.get("protocolType") == _CONSUMER_PROTOCOL:
        for member in data["members"]:
            _open_up(member, "subscription", ConsumerProtocolSubscription)
            _open_up(member, "assignment", ConsumerProtocolAssignment)
    return Documents(key_document, {"version": str(version), "data": data})


def _open_up(member: Document, field: str, cls: type[Message]) -> None:
    """Decode the byte fields of a member; bytes that cannot be decoded are kept."""
    try:
        data = base64.b64decode(member[field])
        version = _read_version(data, field)
        member[field] = to_json(_read(cls, data, version, field), version)
    except (DecodeError, binascii.Error):
        return


def _group_words(offset: int, key: bytes | None, value: bytes | None) -> KafkaWords:
    return _coordinator_words(_group_documents, offset, key, value)


def _share_words(offset: int, key: bytes | None, value: bytes | None) -> KafkaWords:
    return _coordinator_words(_share_documents, offset, key, value)


def _coordinator_words(
    decoded: Callable[[bytes | None, bytes | None], Documents],
    offset: int,
    key: bytes | None,
    value: bytes | None,
) -> KafkaWords:
    if key is None:
        raise DecodeError(f"the record at offset {offset} has no key")
    try:
        documents = decoded(key, value)
    except UnknownRecordType as error:
        return KafkaWords(
            f"Unknown record type {error.record_type} at offset {offset}, skipping.", None
        )
    except DecodeError as error:
        return KafkaWords(f"Error at offset {offset}, skipping. {error}", None)
    value_words = "<DELETE>" if documents.value is None else jackson(documents.value)
    return KafkaWords(jackson(documents.key or {}), value_words)


def jackson(document: Document) -> str:
    """JSON as Jackson prints it: no spaces between tokens, upper-case hex in escapes."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    if "\\u00" not in text:
        return text
    return _ESCAPE.sub(lambda escape: escape[0][:2] + escape[0][2:].upper(), text)


# --- __transaction_state -----------------------------------------------------------------------


def _transaction_messages(
    key: bytes | None, value: bytes | None
) -> tuple[TransactionLogKey, int, TransactionLogValue | None]:
    if key is None:
        raise DecodeError("the record has no key")
    record_type = _read_version(key, "key")
    if record_type != 0:
        raise UnknownRecordType(record_type)
    key_message = decode(TransactionLogKey, key[_VERSION.size :], record_type)
    if value is None:
        return key_message, -1, None
    version = _read_version(value, "value")
    return key_message, version, decode_from(TransactionLogValue, value, _VERSION.size, version)[0]


def _transaction_documents(key: bytes | None, value: bytes | None) -> Documents:
    key_message, version, value_message = _transaction_messages(key, value)
    key_document = {"type": "0", "data": to_json(key_message, 0)}
    if value_message is None:
        return Documents(key_document, None)
    data = to_json(value_message, version)
    data["transactionStatus"] = _state(value_message)
    return Documents(key_document, {"version": str(version), "data": data})


def _transaction_words(offset: int, key: bytes | None, value: bytes | None) -> KafkaWords:
    try:
        key_message, _, value_message = _transaction_messages(key, value)
    except UnknownRecordType as error:
        return KafkaWords(f"unknown::version={error.record_type}", None)
    except DecodeError as error:
        raise DecodeError(f"the record at offset {offset} cannot be decoded: {error}") from error
    name = f"transaction_metadata::transactionalId={key_message.transactional_id}"
    return KafkaWords(name, "<DELETE>" if value_message is None else _state_words(value_message))


def _state(value: TransactionLogValue) -> str:
    status = value.transaction_status
    if not 0 <= status < len(_TRANSACTION_STATES):
        raise DecodeError(f"expected a transaction status of 0 to 7, found {status}")
    return _TRANSACTION_STATES[status]


def _state_words(value: TransactionLogValue) -> str:
    return (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},"
        f"state={_state(value)},partitions=[{','.join(map(str, _partitions(value)))}],"
        f"txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms},"
        f"txnTimeoutMs={value.transaction_timeout_ms}"
    )


def _partitions(value: TransactionLogValue) -> list[TopicPartition]:
    """The partitions of the transaction in the order of kafka-dump-log; none in state Empty."""
    if not value.transaction_status:
        return []
    groups = (
        [TopicPartition(topic.topic, partition) for partition in topic.partition_ids]
        for topic in value.transaction_partitions or ()
    )
    return table_order(groups, partition_hash)


OFFSETS_DECODER: Final = Decoder(_group_documents, _group_words)
TRANSACTIONS_DECODER: Final = Decoder(_transaction_documents, _transaction_words)
METADATA_DECODER: Final = Decoder(
    lambda _, value: Documents(None, metadata_document(value)),
    lambda offset, _, value: KafkaWords(None, metadata_words(offset, value)),
)
SHARE_DECODER: Final = Decoder(_share_documents, _share_words)
_BY_TOPIC: Final = {
    OFFSETS_TOPIC: OFFSETS_DECODER,
    TRANSACTIONS_TOPIC: TRANSACTIONS_DECODER,
    METADATA_TOPIC: METADATA_DECODER,
    SHARE_TOPIC: SHARE_DECODER,
}
