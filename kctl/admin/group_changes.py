"""Deletion of groups, and removal of members."""

import asyncio
from collections.abc import Iterable, Sequence

from broker.errors import ErrorCode
from broker.net.client import Client
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kctl.admin.broker_queries import BrokerUnavailable, change
from kctl.admin.coordinators import change_by_coordinator, coordinators_of
from kctl.model.groups import Member
from kctl.model.outcomes import Outcome, outcome

REASON = "removed with kctl"


async def delete_groups(client: Client, groups: Iterable[str]) -> list[Outcome]:
    """Delete groups without members; outcomes sorted by name."""
    by_node = await coordinators_of(client, groups)
    found = await asyncio.gather(*(_delete_on(client, *item) for item in by_node.items()))
    return sorted((one for part in found for one in part), key=lambda one: one.name)


async def _delete_on(client: Client, node_id: int, names: list[str]) -> list[Outcome]:
    """Delete the groups of one coordinator."""
    request = DeleteGroupsRequest(groups_names=names)
    try:
        answer = await change(client, node_id, lambda: client.send_to(node_id, request))
    except BrokerUnavailable as error:
        return [Outcome(name, ErrorCode.REQUEST_TIMED_OUT, str(error)) for name in names]
    return [outcome(one.group_id, one.error_code) for one in answer.results]


async def remove_members(client: Client, group: str, members: Sequence[Member]) -> list[Outcome]:
    """Remove members; a live consumer joins again.

    Static members are identified by their instance id alone, as Kafka's admin client does.
    """
    leaving = [
        MemberIdentity(
            member_id="" if member.group_instance_id else member.member_id,
            group_instance_id=member.group_instance_id,
            reason=REASON,
        )
        for member in members
    ]
    request = LeaveGroupRequest(group_id=group, members=leaving)
    answer = await change_by_coordinator(client, group, request)
    if answer.error_code:
        return [outcome(group, answer.error_code)]
    return [
        outcome(member.group_instance_id or member.member_id, found.error_code)
        for member, found in zip(members, answer.members, strict=True)
    ]
