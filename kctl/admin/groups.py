"""Consumer groups: listings and descriptions."""

from collections.abc import Iterable, Sequence
from functools import partial

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.codec import decode_from
from broker.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
)
from broker.protocol.messages.list_groups import ListGroupsRequest
from kctl.admin.broker_queries import each_broker, every_broker
from kctl.admin.coordinators import coordinators_of
from kctl.admin.new_groups import describe_new_groups
from kctl.model.cluster import Broker
from kctl.model.groups import DEAD, Group, GroupListing, Member

_NEWEST_ASSIGNMENT = ConsumerProtocolAssignment.versions[1]


async def list_groups(client: Client, states: Sequence[str] = ()) -> list[GroupListing]:
    """The groups of all brokers, or those in one of `states`; not those of Connect workers.

    States are compared here, because clusters before 2.6 cannot filter by state.
    """
    answers = await every_broker(client, lambda node: client.send_to(node, ListGroupsRequest()))
    found = []
    for node, answer in answers.items():
        if answer.error_code:
            raise ApiError(ErrorCode(answer.error_code), f"broker {node} cannot list its groups")
        found += [
            GroupListing(group.group_id, group.protocol_type, group.group_state, group.group_type)
            for group in answer.groups
        ]
    wanted = {state.lower() for state in states}
    return [
        group
        for group in found
        if group.reads_topics and (group.state.lower() in wanted or not wanted)
    ]


async def describe_groups(client: Client, groups: Iterable[str]) -> list[Group]:
    """The groups sorted by name; one request per coordinator.

    Groups that a coordinator does not know as classic ones are looked up with the APIs of the new
    protocols, as far as it has them.
    """
    by_node = await coordinators_of(client, groups)
    answers = await each_broker(client, by_node, partial(_describe, client))
    found = (group for answer in answers.values() for group in answer)
    return sorted(found, key=lambda group: group.group_id)


async def _describe(client: Client, node_id: int, groups: list[str]) -> list[Group]:
    answer = await client.send_to(node_id, DescribeGroupsRequest(groups=groups))
    node = client.cluster.nodes[node_id]
    coordinator = Broker(node_id, node.host, node.port, node.rack)
    groups_found = [_group(found, coordinator) for found in answer.groups]
    if not all(group.exists for group in groups_found):
        unknown = [group.group_id for group in groups_found if not group.exists]
        newer = await describe_new_groups(client, coordinator, unknown)
        return [newer.get(group.group_id, group) for group in groups_found]
    return groups_found


def _group(found: DescribedGroup, coordinator: Broker) -> Group:
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return Group(found.group_id, DEAD, "", (), coordinator)
    if found.error_code:
        raise ApiError(ErrorCode(found.error_code), f"group {found.group_id}")
    members = tuple(_member(member) for member in found.members)
    return Group(found.group_id, found.group_state, found.protocol_data, members, coordinator)


def _member(found: DescribedGroupMember) -> Member:
    return Member(
        found.member_id,
        found.group_instance_id,
        found.client_id,
        found.client_host,
        tuple(_assigned(bytes(found.member_assignment))),
    )


def _assigned(data: bytes) -> list[TopicPartition]:
    """The assignment of a member; empty during a rebalance."""
    if len(data) < 2:
        return []
    version = min(int.from_bytes(data[:2], "big"), _NEWEST_ASSIGNMENT)
    assignment, _ = decode_from(ConsumerProtocolAssignment, data, 2, version)
    return [
        TopicPartition(topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    ]
