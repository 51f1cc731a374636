"""DeleteRecords."""

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
from kctl.model.offsets import Deletion


async def delete_records(
    client: Client, before: Mapping[TopicPartition, int], *, timeout_s: float
) -> list[Deletion]:
    """Delete the records before each offset, on the partition leaders."""
    results = {}
    for leader, partitions in (await client.leaders_of(before)).items():
        if leader < 0:
            unled = ErrorCode.LEADER_NOT_AVAILABLE
            results.update({tp: Deletion(tp, -1, unled) for tp in partitions})
            continue
        request = _request({tp: before[tp] for tp in partitions}, timeout_s)
        answer = await client.send_to(leader, request)
        for topic in answer.topics:
            for one in topic.partitions:
                tp = TopicPartition(topic.name, one.partition_index)
                results[tp] = Deletion(tp, one.low_watermark, ErrorCode(one.error_code))
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
        timeout_ms=round(timeout_s * 1000),
    )
