"""End offsets of leader epochs, which show whether a log was truncated since an offset was read."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_CONSUMER = -1
"""The replica id of a client that is not a replica."""


async def epoch_end_offsets(
    client: Client, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The end offset of each partition's leader epoch; -1 if the log has no such epoch.

    Partitions without a leader, or whose leader returns an error, are left out.
    """
    by_leader = await client.leaders_of(epochs)
    answers = await asyncio.gather(
        *(
            _ask_leader(client, leader, {each: epochs[each] for each in partitions})
            for leader, partitions in by_leader.items()
            if leader >= 0
        )
    )
    return {partition: offset for answer in answers for partition, offset in answer.items()}


async def _ask_leader(
    client: Client, leader: int, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    by_topic: dict[str, list[OffsetForLeaderPartition]] = defaultdict(list)
    for (topic, partition), epoch in epochs.items():
        by_topic[topic].append(OffsetForLeaderPartition(partition=partition, leader_epoch=epoch))
    topics = [OffsetForLeaderTopic(topic=name, partitions=each) for name, each in by_topic.items()]
    response = await client.send_to(
        leader, OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics)
    )
    return {
        TopicPartition(topic.topic, found.partition): found.end_offset
        for topic in response.topics
        for found in topic.partitions
        if found.error_code == ErrorCode.NONE
    }
