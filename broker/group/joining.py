"""The rules of JoinGroup. `join` is the entry point.

no member id
    dynamic, v4+          gets an id and is pending until it joins with it (KIP-394)
    dynamic, before v4    becomes a member
    static, new           becomes a member
    static, known         replaces its previous member id, which is fenced (KIP-345)
a pending member id       becomes a member
a member                  gets the current generation again, or starts a rebalance
"""

from dataclasses import replace
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.group.group import Group
from broker.group.member import (
    UNKNOWN_MEMBER_ID,
    JoiningMember,
    JoinResult,
    Member,
    Reply,
    SyncResult,
)
from broker.group.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long a new member's join may wait. A disconnected client looks like one that waits, and each
of its retries adds a member; without a limit they would accumulate."""


def join(group: Group, joining: JoiningMember, reply: Reply[JoinResult]) -> None:
    """Handle a JoinGroup request; ApiError if it is refused."""
    if not _has_room_for(group, joining.member_id):
        group.membership.remove(joining.member_id)
        group.maybe_complete_join()
        reply.set_result(JoinResult(UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED))
        return
    group.check_alive()
    _check_protocols(group, joining)
    if joining.member_id == UNKNOWN_MEMBER_ID:
        _join_as_new(group, joining, reply)
    elif joining.member_id in group.membership.pending:
        _add_member(group, joining, joining.member_id, reply)
    else:
        group.membership.check_current(joining.member_id, joining.group_instance_id)
        _rejoin(group, joining, reply)
    group.maybe_complete_join()


def _has_room_for(group: Group, member_id: str) -> bool:
    """During a rebalance only members that have joined count, so the last ones are refused."""
    max_size, membership = group.config.group_max_size, group.membership
    if group.state in (EMPTY, DEAD):
        return True
    if group.state is PREPARING_REBALANCE:
        is_waiting = member_id in membership.awaiting_join
        return is_waiting or len(membership.awaiting_join) < max_size
    return member_id in membership or len(membership) < max_size


def _check_protocols(group: Group, joining: JoiningMember) -> None:
    if group.state is EMPTY:
        fits = bool(joining.protocol_type and joining.protocols)
    else:
        fits = group.membership.supports_protocols(joining.protocol_type, joining.protocols)
    if not fits:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _join_as_new(group: Group, joining: JoiningMember, reply: Reply[JoinResult]) -> None:
    member_id = joining.generate_member_id()
    instance_id = joining.group_instance_id
    former = None if instance_id is None else group.membership.static_members.get(instance_id)
    if former is not None:
        _replace_static_member(group, joining, (former, member_id), reply)
    elif joining.require_known_member_id and instance_id is None:
        deadline_ms = group.now_ms() + joining.session_timeout_ms
        group.membership.pending[member_id] = deadline_ms
        reply.set_result(JoinResult(member_id, ErrorCode.MEMBER_ID_REQUIRED))
    else:
        _add_member(group, joining, member_id, reply)


def _add_member(
    group: Group, joining: JoiningMember, member_id: str, reply: Reply[JoinResult]
) -> None:
    member = Member(
        member_id=member_id,
        group_instance_id=joining.group_instance_id,
        client_id=joining.client_id,
        client_host=joining.client_host,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        session_timeout_ms=joining.session_timeout_ms,
        protocols=joining.protocols,
        is_new=True,
    )
    if group.state is PREPARING_REBALANCE and group.generation_id == 0:
        group.new_member_added = True
    group.membership.add(member, joining.protocol_type)
    group.membership.await_join(member_id, reply)
    group.touch(member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    group.maybe_prepare_rebalance(f"new member {member_id}, reason: {joining.reason}")


def _rejoin(group: Group, joining: JoiningMember, reply: Reply[JoinResult]) -> None:
    """Handle the join of a member.

    A. During a rebalance: it has joined now.
    B. Its protocols are unchanged and the generation exists (its response was lost, or it does not
       know that it is up to date): it gets the current generation.
    C. Its protocols changed, or it is the leader of a stable group, which requests a rebalance when
       its topics changed: all members must rejoin.
    """
    member = group.membership[joining.member_id]
    if group.state is EMPTY:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    is_same = member.protocols == joining.protocols
    is_stable_leader = group.state is STABLE and group.membership.leader == member.member_id
    if group.state is not PREPARING_REBALANCE and is_same and not is_stable_leader:
        reply.set_result(group.join_result(member.member_id))  # B
        return
    _update_member(group, member, joining)  # A, C
    group.membership.await_join(member.member_id, reply)
    group.maybe_prepare_rebalance(f"member {member.member_id} rejoins, reason: {joining.reason}")


def _update_member(group: Group, member: Member, joining: JoiningMember) -> None:
    group.membership.set_protocols(member, joining.protocols)
    member.rebalance_timeout_ms = joining.rebalance_timeout_ms
    member.session_timeout_ms = joining.session_timeout_ms


def _replace_static_member(
    group: Group, joining: JoiningMember, ids: tuple[str, str], reply: Reply[JoinResult]
) -> None:
    """Give a returning static member a new id; without other changes there is no rebalance."""
    former, member_id = ids
    former_leader = group.membership.leader or ""
    _fence(group, former)
    member = group.membership.replace_static(former, member_id)
    if former in group.pending_sync:
        group.pending_sync ^= {former, member_id}
    group.touch(member)
    _update_member(group, member, joining)
    group.membership.await_join(member_id, reply)
    if group.state is COMPLETING_REBALANCE:
        # The leader may be computing an assignment for the former id.
        group.prepare_rebalance(f"static member {joining.group_instance_id} is back")
    elif group.state is STABLE and group.membership.select_protocol() != group.protocol_name:
        group.prepare_rebalance(f"{joining.group_instance_id} changed its protocols")
    elif group.state is STABLE:
        _store_replaced_member(group, joining, (former, member_id), former_leader)


def _fence(group: Group, member_id: str) -> None:
    fenced = ErrorCode.FENCED_INSTANCE_ID
    group.membership.reply_join(member_id, JoinResult(member_id, fenced))
    group.membership.reply_sync(member_id, SyncResult(fenced))


def _store_replaced_member(
    group: Group, joining: JoiningMember, ids: tuple[str, str], former_leader: str
) -> None:
    """Answer when the new id is stored, so that it is still the member after a failover."""
    member_id, generation_id = ids[1], group.generation_id

    def on_stored(error: ErrorCode) -> None:
        # If a rebalance started meanwhile, it answers this join.
        if group.state is not STABLE or group.generation_id != generation_id:
            return
        if error is not ErrorCode.NONE:
            _restore_replaced_member(group, ids, former_leader, error)
            return
        result = group.join_result(member_id)
        if joining.can_skip_assignment:
            result = replace(result, skip_assignment=group.membership.leader == member_id)
        else:
            # An older client that leads would send an assignment, which a stable group ignores.
            # With the former leader's id in the response it acts as a follower.
            result = replace(result, leader=former_leader, members=())
        group.membership.reply_join(member_id, result)

    group.store({member.member_id: member.assignment for member in group.membership}, on_stored)


def _restore_replaced_member(
    group: Group, ids: tuple[str, str], former_leader: str, error: ErrorCode
) -> None:
    former, member_id = ids
    result = group.join_result(member_id)
    failed = replace(
        result, member_id=UNKNOWN_MEMBER_ID, error=error, leader=former_leader, members=()
    )
    group.membership.reply_join(member_id, failed)
    group.touch(group.membership.replace_static(member_id, former))
