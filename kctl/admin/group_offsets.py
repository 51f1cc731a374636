"""Committed offsets of groups: fetch, commit, delete."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kctl.admin.broker_queries import each_broker
from kctl.admin.coordinators import change_by_coordinator, coordinators_of

Offsets = dict[TopicPartition, int]
Outcomes = dict[TopicPartition, ErrorCode]

_MANY_GROUPS_SINCE = 8
"""The first version of OffsetFetch that takes several groups."""


async def committed_offsets(client: Client, groups: Iterable[str]) -> dict[str, Offsets]:
    """The committed offsets of each group; empty for a group without offsets."""
    by_node = await coordinators_of(client, groups)
    answers = await each_broker(client, by_node, partial(_fetch, client))
    return {group: offsets for found in answers.values() for group, offsets in found.items()}


async def _fetch(client: Client, node_id: int, groups: list[str]) -> dict[str, Offsets]:
    newest = (await client.versions_of(node_id)).get(ApiKey.OFFSET_FETCH, (0, 0))[1]
    if newest < _MANY_GROUPS_SINCE:
        return {group: await _fetch_one(client, node_id, group) for group in groups}
    wanted = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    answer = await client.send_to(node_id, OffsetFetchRequest(groups=wanted))
    for found in answer.groups:
        if found.error_code != ErrorCode.GROUP_ID_NOT_FOUND:  # Kafka 4.x: unknown, or share group
            _check(found.error_code, found.group_id)
    return {
        found.group_id: {
            TopicPartition(topic.name, partition.partition_index): partition.committed_offset
            for topic in found.topics
            for partition in topic.partitions
            if partition.committed_offset >= 0
        }
        for found in answer.groups
    }


async def _fetch_one(client: Client, node_id: int, group: str) -> Offsets:
    answer = await client.send_to(node_id, OffsetFetchRequest(group_id=group, topics=None))
    _check(answer.error_code, group)
    return {
        TopicPartition(topic.name, partition.partition_index): partition.committed_offset
        for topic in answer.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


def _check(error_code: int, group: str) -> None:
    if error_code:
        raise ApiError(ErrorCode(error_code), f"group {group}")


async def commit_offsets(
    client: Client, group: str, offsets: Mapping[TopicPartition, int]
) -> Outcomes:
    """Commit offsets for a group without members; the outcome of each partition."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), offset in offsets.items():
        by_topic[topic].append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
        )
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=partitions)
        for name, partitions in by_topic.items()
    ]
    request = OffsetCommitRequest(group_id=group, topics=topics)
    answer = await change_by_coordinator(client, group, request)
    return {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


async def delete_offsets(
    client: Client, group: str, partitions: Iterable[TopicPartition]
) -> tuple[ErrorCode, Outcomes]:
    """Delete committed offsets: the error of the request, and of each partition."""
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for topic, partition in partitions:
        by_topic[topic].append(OffsetDeleteRequestPartition(partition_index=partition))
    topics = [
        OffsetDeleteRequestTopic(name=name, partitions=asked) for name, asked in by_topic.items()
    ]
    request = OffsetDeleteRequest(group_id=group, topics=topics)
    answer = await change_by_coordinator(client, group, request)
    outcomes = {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }
    return ErrorCode(answer.error_code), outcomes
