"""Consumer groups: which there are, who is in them, and who coordinates them."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
from kctl.admin.cluster import Broker
from kctl.admin.coordinators import coordinators_of

CONSUMER_PROTOCOL_TYPE = "consumer"
DEAD, EMPTY, STABLE = "Dead", "Empty", "Stable"
_NEWEST_ASSIGNMENT = ConsumerProtocolAssignment.versions[1]


@dataclass(frozen=True)
class GroupListing:
    """A group as a broker lists it; state and type are empty on clusters that do not tell."""

    group_id: str
    protocol_type: str
    state: str
    type: str

    @property
    def is_consumer_group(self) -> bool:
        """Whether consumers are in it, or were; Connect's workers form groups of another kind."""
        return self.protocol_type in (CONSUMER_PROTOCOL_TYPE, "")


@dataclass(frozen=True)
class Member:
    """One consumer, and what it was given to read."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class Group:
    """A group as its coordinator sees it; one that does not exist is Dead."""

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]
    coordinator: Broker

    @property
    def exists(self) -> bool:
        """Whether the coordinator knows it."""
        return self.state != DEAD

    @property
    def has_coordinator(self) -> bool:
        """Whether a broker keeps it: groups of old consumers have none."""
        return self.coordinator.id >= 0


async def list_groups(client: Client, states: Sequence[str] = ()) -> list[GroupListing]:
    """The consumer groups of all brokers, as they list them; `states` leaves out the others.

    States are compared here, because clusters before 2.6 cannot be asked for them.
    """
    answers = await client.send_to_all(ListGroupsRequest())
    found = []
    for answer in answers.values():
        if isinstance(answer, Exception):
            raise answer
        if answer.error_code:
            raise ApiError(ErrorCode(answer.error_code), "the groups could not be listed")
        found += [
            GroupListing(group.group_id, group.protocol_type, group.group_state, group.group_type)
            for group in answer.groups
        ]
    wanted = {state.lower() for state in states}
    return [
        group
        for group in found
        if group.is_consumer_group and (group.state.lower() in wanted or not wanted)
    ]


async def describe_groups(client: Client, groups: Iterable[str]) -> list[Group]:
    """The groups in the order of their names; every coordinator is asked once."""
    by_node = await coordinators_of(client, groups)
    answers = await asyncio.gather(*(_describe(client, *item) for item in by_node.items()))
    return sorted((group for answer in answers for group in answer), key=lambda g: g.group_id)


async def _describe(client: Client, node_id: int, groups: list[str]) -> list[Group]:
    answer = await client.send_to(node_id, DescribeGroupsRequest(groups=groups))
    node = client.cluster.nodes[node_id]
    coordinator = Broker(node_id, node.host, node.port, node.rack)
    return [_group(found, coordinator) for found in answer.groups]


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
    """What a member was given; while the group rebalances that is nothing."""
    if len(data) < 2:
        return []
    version = min(int.from_bytes(data[:2], "big"), _NEWEST_ASSIGNMENT)
    assignment, _ = decode_from(ConsumerProtocolAssignment, data, 2, version)
    return [
        TopicPartition(topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    ]
