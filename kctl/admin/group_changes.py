"""Deletion of groups, and removal of members."""

import asyncio
from collections.abc import Iterable, Sequence

from broker.net.client import Client
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kctl.admin.coordinators import coordinators_of
from kctl.model.groups import Member
from kctl.model.outcomes import Outcome, outcome

REASON = "removed with kctl"


async def delete_groups(client: Client, groups: Iterable[str]) -> list[Outcome]:
    """Delete groups without members; outcomes sorted by name."""
    by_node = await coordinators_of(client, groups)
    answers = await asyncio.gather(
        *(
            client.send_to(node_id, DeleteGroupsRequest(groups_names=names))
            for node_id, names in by_node.items()
        )
    )
    found = [outcome(one.group_id, one.error_code) for answer in answers for one in answer.results]
    return sorted(found, key=lambda one: one.name)


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
    answer = await client.send_to_coordinator(group, request)
    if answer.error_code:
        return [outcome(group, answer.error_code)]
    return [
        outcome(member.group_instance_id or member.member_id, found.error_code)
        for member, found in zip(members, answer.members, strict=True)
    ]
