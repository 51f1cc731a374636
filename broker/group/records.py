"""The records of `__consumer_offsets`, as Kafka 3.9 writes them.

    key                                   value (null: removed)
    int16 1 · group, topic, partition     int16 3 · offset, leader epoch, metadata, commit time
                                          int16 1 · … and expiry, for clients that set one
    int16 2 · group                       int16 3 · protocol, generation, leader, members

Every version that Kafka ever wrote can be read. As in Kafka, batches of offsets have base sequence
0, as if an idempotent producer had written them; those of groups and tombstones have none.
"""

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.errors import CorruptRecord
from broker.group.offsets import Commits, OffsetAndMetadata
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.protocol.codec import decode_from
from broker.protocol.errors import DecodeError
from broker.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from broker.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from broker.records.builder import BatchSettings, build_batch
from broker.records.coordinator_records import (
    VERSION_SIZE,
    decode_versioned,
    encode_versioned,
    read_version,
)
from broker.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Codec

logger = logging.getLogger(__name__)

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_OFFSET_KEY_VERSION: Final = 1
_GROUP_KEY_VERSION: Final = 2
# Both values have a version 4, flexible, which Kafka reads but does not write yet.
_OFFSET_VALUE_VERSION: Final = 3
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
_GROUP_VALUE_VERSION: Final = 3


class OffsetKey(NamedTuple):
    """The decoded key of an offset record."""

    group_id: str
    partition: TopicPartition


class GroupKey(NamedTuple):
    """The decoded key of a group record."""

    group_id: str


NO_PRODUCER: Final = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """The key of a committed offset."""
    key = OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    return encode_versioned(key, _OFFSET_KEY_VERSION)


def group_key(group_id: str) -> bytes:
    """The key of a group."""
    return encode_versioned(GroupMetadataKey(group=group_id), _GROUP_KEY_VERSION)


def offset_value(value: OffsetAndMetadata) -> bytes:
    """The value of a committed offset."""
    expiry = value.expire_timestamp_ms
    message = OffsetCommitValue(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp_ms,
        expire_timestamp=-1 if expiry is None else expiry,
    )
    version = _OFFSET_VALUE_VERSION if expiry is None else _OFFSET_VALUE_VERSION_WITH_EXPIRY
    return encode_versioned(message, version)


def build_offsets_batch(
    group_id: str,
    commits: Commits,
    timestamp_ms: int,
    codec: Codec = Codec.NONE,
    producer: ProducerIdAndEpoch = NO_PRODUCER,
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
        encode_versioned(value, _GROUP_VALUE_VERSION),
        (),
    )
    return build_batch([record], BatchSettings(codec=codec))


def is_offset_key(key: bytes) -> bool:
    """Whether a key is that of an offset, by its version."""
    return key.startswith((b"\0\1", b"\0\0"))


def is_group_key(key: bytes) -> bool:
    """Whether a key is that of a group, by its version."""
    return key.startswith(b"\0\2")


def read_key(key: bytes | None) -> OffsetKey | GroupKey | None:
    """Decode a key; None for a key version that is not known."""
    version = read_version(key)
    assert key is not None  # noqa: S101
    if version <= _OFFSET_KEY_VERSION:
        offset = decode_versioned(OffsetCommitKey, key, version)
        return OffsetKey(offset.group, TopicPartition(offset.topic, offset.partition))
    if version == _GROUP_KEY_VERSION:
        return GroupKey(decode_versioned(GroupMetadataKey, key, version).group)
    return None


def read_offset_value(data: bytes) -> OffsetAndMetadata:
    """Decode the value of a committed offset."""
    value = decode_versioned(OffsetCommitValue, data, read_version(data))
    return OffsetAndMetadata(
        offset=value.offset,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        leader_epoch=value.leader_epoch,
        expire_timestamp_ms=None if value.expire_timestamp == -1 else value.expire_timestamp,
    )


def read_group_value(data: bytes) -> GroupMetadataValue:
    """Decode the value of a group; members of version 0 have no rebalance timeout (-1)."""
    return decode_versioned(GroupMetadataValue, data, read_version(data))


def read_subscribed_topics(group_id: str, subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics in the subscriptions of a consumer group; None if one cannot be decoded.

    All versions of a subscription start with the fields of version 0, so only those are read.
    """
    topics: set[str] = set()
    for data in subscriptions:
        try:
            read_version(data)
            subscription, _ = decode_from(ConsumerProtocolSubscription, data, VERSION_SIZE, 0)
        except (CorruptRecord, DecodeError) as error:
            logger.warning("cannot decode a subscription group=%s error=%s", group_id, error)
            return None
        topics.update(subscription.topics)
    return frozenset(topics)
