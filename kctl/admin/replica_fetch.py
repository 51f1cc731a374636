"""Fetch and ListOffsets as a debugging consumer: brokers answer for followers too.

Works on every Kafka: replica id -2 is what kafka-replica-verification uses.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from broker.model import TopicPartition, Uuid
from broker.net.client import Client
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

DEBUGGING_CONSUMER = -2
"""The replica id of a client that may also read from followers."""
_REPLICA_STATE_SINCE = 15


@dataclass(frozen=True)
class FetchSizes:
    """Limits of a fetch."""

    partition_bytes: int = 1 << 20
    max_wait_ms: int = 500


async def fetch_from_replica(
    client: Client,
    broker: int,
    offsets: Mapping[TopicPartition, int],
    ids: Mapping[str, Uuid],
    sizes: FetchSizes,
) -> dict[TopicPartition, PartitionData]:
    """What the broker's own replicas have at `offsets`."""
    newest = (await client.versions_of(broker)).get(ApiKey.FETCH, (0, 0))[1]
    answer = await client.send_to(broker, _fetch_request(offsets, ids, sizes, newest))
    return _by_partition(answer, ids)


async def offsets_of_replica(
    client: Client, broker: int, wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
    """Offsets of the broker's own replicas; the latest one is the log end, not the watermark."""
    by_topic: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for (topic, partition), timestamp in wanted.items():
        by_topic[topic].append(ListOffsetsPartition(partition_index=partition, timestamp=timestamp))
    request = ListOffsetsRequest(
        replica_id=DEBUGGING_CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=some) for name, some in by_topic.items()],
    )
    answer = await client.send_to(broker, request)
    return {
        TopicPartition(topic.name, one.partition_index): one
        for topic in answer.topics
        for one in topic.partitions
    }


def _fetch_request(
    offsets: Mapping[TopicPartition, int],
    ids: Mapping[str, Uuid],
    sizes: FetchSizes,
    newest: int,
) -> FetchRequest:
    by_topic: dict[str, list[FetchPartition]] = defaultdict(list)
    for (topic, partition), offset in offsets.items():
        by_topic[topic].append(
            FetchPartition(
                partition=partition,
                fetch_offset=offset,
                partition_max_bytes=sizes.partition_bytes,
            )
        )
    has_state = newest >= _REPLICA_STATE_SINCE
    return FetchRequest(
        replica_id=-1 if has_state else DEBUGGING_CONSUMER,
        replica_state=ReplicaState(replica_id=DEBUGGING_CONSUMER if has_state else -1),
        max_wait_ms=sizes.max_wait_ms,
        min_bytes=1,
        topics=[
            FetchTopic(topic=name, topic_id=ids.get(name, Uuid.ZERO), partitions=some)
            for name, some in by_topic.items()
        ],
    )


def _by_partition(
    answer: FetchResponse, ids: Mapping[str, Uuid]
) -> dict[TopicPartition, PartitionData]:
    names = {topic_id: name for name, topic_id in ids.items()}
    return {
        TopicPartition(topic.topic or names[topic.topic_id], one.partition_index): one
        for topic in answer.responses
        for one in topic.partitions
    }
