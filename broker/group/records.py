"""The records of `__consumer_offsets`, as Kafka 3.9 writes them.

    key                                   value (null: forget it)
    int16 1 · group, topic, partition     int16 3 · offset, leader epoch, metadata, commit time
                                          int16 1 · … and expiry, for clients that chose it
    int16 2 · group                       int16 3 · protocol, generation, leader, members

Every version Kafka ever wrote is read. One quirk is kept: batches of offsets have base sequence 0,
as if an idempotent producer had written them, those of groups and tombstones have none.
"""

import logging
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

from broker.errors import CorruptRecord
from broker.group.offsets import Commits, OffsetAndMetadata
from broker.model import TopicPartition
from broker.protocol.codec import decode, decode_from, encode
from broker.protocol.errors import DecodeError
from broker.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from broker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from broker.protocol.schema import Message
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Codec

logger = logging.getLogger(__name__)

MessageT = TypeVar("MessageT", bound=Message)

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_VERSION: Final = struct.Struct(">h")
_OFFSET_KEY_VERSION: Final = 1
_GROUP_KEY_VERSION: Final = 2
# Both values have a version 4, flexible, which Kafka reads but does not write yet.
_OFFSET_VALUE_VERSION: Final = 3
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
_GROUP_VALUE_VERSION: Final = 3


class OffsetKey(NamedTuple):
    """The key of an offset."""

    group_id: str
    partition: TopicPartition


class GroupKey(NamedTuple):
    """The key of a group."""

    group_id: str


class ProducerState(NamedTuple):
    """The transactional producer in whose name offsets are committed."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


NO_PRODUCER: Final = ProducerState()


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """The key under which a partition's offset is kept."""
    key = OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    return _prefixed(key, _OFFSET_KEY_VERSION)


def group_key(group_id: str) -> bytes:
    """The key under which a group is kept."""
    return _prefixed(GroupMetadataKey(group=group_id), _GROUP_KEY_VERSION)


def offset_value(value: OffsetAndMetadata) -> bytes:
    """A committed offset."""
    expiry = value.expire_timestamp_ms
    message = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp_ms,
        expire_timestamp=-1 if expiry is None else expiry,
    )
    version = _OFFSET_VALUE_VERSION if expiry is None else _OFFSET_VALUE_VERSION_WITH_EXPIRY
    return _prefixed(message, version)


def _prefixed(message: Message, version: int) -> bytes:
    return _VERSION.pack(version) + encode(message, version)


def build_offsets_batch(
    group_id: str,
    commits: Commits,
    timestamp_ms: int,
    codec: Codec = Codec.NONE,
    producer: ProducerState = NO_PRODUCER,
) -> bytes:
    """The batch that commits offsets."""
    settings = BatchSettings(
        codec=codec,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=producer is not NO_PRODUCER,
    )
    return build_batch(
        (
            (number, timestamp_ms, offset_key(group_id, partition), offset_value(value), ())
            for number, (partition, value) in enumerate(commits.items())
        ),
        settings,
    )


def build_group_batch(
    group_id: str, value: GroupMetadataValue, timestamp_ms: int, codec: Codec = Codec.NONE
) -> bytes:
    """The batch that stores a group."""
    record = (
        0,
        timestamp_ms,
        group_key(group_id),
        _prefixed(value, _GROUP_VALUE_VERSION),
        (),
    )
    return build_batch([record], BatchSettings(codec=codec))


def build_tombstones(keys: Iterable[bytes], timestamp_ms: int, codec: Codec = Codec.NONE) -> bytes:
    """The batch that forgets what is kept under these keys, at least one."""
    rows = ((number, timestamp_ms, key, None, ()) for number, key in enumerate(keys))
    return build_batch(rows, BatchSettings(codec=codec))


def is_offset_key(key: bytes) -> bool:
    """Whether a record is about an offset; tells by the version alone."""
    return key.startswith((b"\0\1", b"\0\0"))


def is_group_key(key: bytes) -> bool:
    """Whether a record is about a group; tells by the version alone."""
    return key.startswith(b"\0\2")


def read_key(key: bytes | None) -> OffsetKey | GroupKey | None:
    """What a record is about; None for a kind newer than this."""
    version = _version(key)
    assert key is not None  # noqa: S101
    if version <= _OFFSET_KEY_VERSION:
        offset = _body(OffsetCommitKey, key, version)
        return OffsetKey(offset.group, TopicPartition(offset.topic, offset.partition))
    if version == _GROUP_KEY_VERSION:
        return GroupKey(_body(GroupMetadataKey, key, version).group)
    return None


def read_offset_value(data: bytes) -> OffsetAndMetadata:
    """A committed offset."""
    value = _body(OffsetCommitValue, data, _version(data))
    return OffsetAndMetadata(
        offset=value.offset,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        leader_epoch=value.leader_epoch,
        expire_timestamp_ms=None if value.expire_timestamp == -1 else value.expire_timestamp,
    )


def read_group_value(data: bytes) -> GroupMetadataValue:
    """A stored group; members of version 0 have no rebalance timeout (-1)."""
    return _body(GroupMetadataValue, data, _version(data))


def _version(data: bytes | None) -> int:
    if data is None or len(data) < _VERSION.size:
        raise CorruptRecord(f"group record: expected a version, found {data!r}")
    (version,) = _VERSION.unpack_from(data)
    return int(version)


def _body(cls: type[MessageT], data: bytes, version: int) -> MessageT:
    try:
        return decode(cls, memoryview(data)[_VERSION.size :], version)
    except DecodeError as error:
        raise CorruptRecord(f"group record: {error}") from error


def read_subscribed_topics(group_id: str, subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics that members of a consumer group name; None if one cannot be understood.

    All versions of a subscription begin as version 0 does, so that is all that is read.
    """
    topics: set[str] = set()
    for data in subscriptions:
        try:
            _version(data)
            subscription, _ = decode_from(ConsumerProtocolSubscription, data, _VERSION.size, 0)
        except (CorruptRecord, DecodeError) as error:
            logger.warning("subscription not understood group=%s error=%s", group_id, error)
            return None
        topics.update(subscription.topics)
    return frozenset(topics)
