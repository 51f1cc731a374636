"""DeleteRecords."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kctl.admin.broker_queries import BrokerUnavailable, change, request_timeout_ms
from kctl.model.offsets import Deletion


async def delete_records(
    client: Client, before: Mapping[TopicPartition, int], *, timeout_s: float
) -> list[Deletion]:
    """Delete the records before each offset, on the partition leaders."""

    async def on_leader(leader: int, partitions: list[TopicPartition]) -> list[Deletion]:
        if leader < 0:
            return [Deletion(tp, -1, ErrorCode.LEADER_NOT_AVAILABLE) for tp in partitions]
        request = _request({tp: before[tp] for tp in partitions}, timeout_s)
        try:
            answer = await change(client, leader, lambda: client.send_to(leader, request))
        except BrokerUnavailable:
            return [Deletion(tp, -1, ErrorCode.REQUEST_TIMED_OUT) for tp in partitions]
        return [
            Deletion(
                TopicPartition(topic.name, one.partition_index),
                one.low_watermark,
                ErrorCode(one.error_code),
            )
            for topic in answer.topics
            for one in topic.partitions
        ]

    by_leader = await client.leaders_of(before)
    found = await asyncio.gather(*(on_leader(*item) for item in by_leader.items()))
    results = {one.partition: one for part in found for one in part}
    return [results[partition] for partition in before]


def _request(before: Mapping[TopicPartition, int], timeout_s: float) -> DeleteRecordsRequest:
    by_topic: dict[str, list[DeleteRecordsPartition]] = defaultdict(list)
    for (topic, partition), offset in before.items():
        wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
        by_topic[topic].append(wanted)
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=name, partitions=asked) for name, asked in by_topic.items()
        ],
        timeout_ms=request_timeout_ms(timeout_s),
    )
