"""Groups of the new protocols: consumer groups of KIP-848 and share groups of KIP-932."""

from collections.abc import Iterable, Sequence

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import consumer_group_describe, share_group_describe
from broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    RequestGroup,
)
from kctl.admin.broker_queries import each_broker
from kctl.admin.coordinators import coordinators_of
from kctl.model.cluster import Broker
from kctl.model.groups import Group, GroupType, Member

_NOT_HERE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
"""Errors of groups of another type; brokers that use ZooKeeper answer UNSUPPORTED_VERSION."""


async def describe_new_groups(
    client: Client, coordinator: Broker, names: Sequence[str]
) -> dict[str, Group]:
    """By name: those of the groups that are consumer groups of KIP-848 or share groups."""
    served = await client.versions_of(coordinator.id)
    found: dict[str, Group] = {}
    if ApiKey.CONSUMER_GROUP_DESCRIBE in served:
        consumers = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=list(names))
        for one in (await client.send_to(coordinator.id, consumers)).groups:
            if _is_here(one.group_id, one.error_code, one.error_message):
                found[one.group_id] = _consumer_group(one, coordinator)
    rest = [name for name in names if name not in found]
    if rest and ApiKey.SHARE_GROUP_DESCRIBE in served:
        shares = share_group_describe.ShareGroupDescribeRequest(group_ids=rest)
        for share in (await client.send_to(coordinator.id, shares)).groups:
            if _is_here(share.group_id, share.error_code, share.error_message):
                found[share.group_id] = _share_group(share, coordinator)
    return found


def _is_here(name: str, error_code: int, message: str | None) -> bool:
    error = ErrorCode(error_code)
    if error and error not in _NOT_HERE:
        raise ApiError(error, message or f"group {name}")
    return not error


def _consumer_group(found: consumer_group_describe.DescribedGroup, coordinator: Broker) -> Group:
    members = tuple(
        Member(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            tuple(_places(one.assignment)),
            one.member_epoch,
            tuple(_places(one.target_assignment)),
        )
        for one in found.members
    )
    return Group(
        found.group_id,
        found.group_state,
        found.assignor_name,
        members,
        coordinator,
        GroupType.CONSUMER,
        found.group_epoch,
        found.assignment_epoch,
    )


def _share_group(found: share_group_describe.DescribedGroup, coordinator: Broker) -> Group:
    members = tuple(
        Member(
            one.member_id,
            None,
            one.client_id,
            one.client_host,
            tuple(_places(one.assignment)),
            one.member_epoch,
        )
        for one in found.members
    )
    return Group(
        found.group_id,
        found.group_state,
        found.assignor_name,
        members,
        coordinator,
        GroupType.SHARE,
        found.group_epoch,
        found.assignment_epoch,
    )


def _places(assignment: consumer_group_describe.Assignment) -> Iterable[TopicPartition]:
    return (
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


StartOffsets = dict[TopicPartition, int | None]


async def share_start_offsets(client: Client, names: Iterable[str]) -> dict[str, StartOffsets]:
    """By share group: the first offset of each partition that may still be delivered.

    None for partitions of which the group has read nothing yet.
    """
    by_node = await coordinators_of(client, names)

    async def query(node_id: int, groups: list[str]) -> dict[str, StartOffsets]:
        wanted = [RequestGroup(group_id=group, topics=None) for group in groups]
        answer = await client.send_to(node_id, DescribeShareGroupOffsetsRequest(groups=wanted))
        offsets: dict[str, StartOffsets] = {}
        for found in answer.groups:
            if found.error_code:
                raise ApiError(ErrorCode(found.error_code), found.error_message or found.group_id)
            offsets[found.group_id] = {
                TopicPartition(topic.topic_name, one.partition_index): (
                    one.start_offset if one.start_offset >= 0 else None
                )
                for topic in found.topics
                for one in topic.partitions
                if not one.error_code
            }
        return offsets

    answers = await each_broker(client, by_node, query)
    return {group: own for part in answers.values() for group, own in part.items()}
