"""The members of a group: static instances, pending ids, the leader, the common protocols.

Only collections; `group.py` decides what follows from a change.
"""

from collections import Counter
from collections.abc import Iterator

from broker.errors import ApiError, ErrorCode
from broker.group.member import JoinedMember, JoinResult, Member, Protocols, Reply, SyncResult


class Membership:
    """The members of one group."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member id by group instance id. Invariant: every value is a key of `members`."""
        self.pending: dict[str, int] = {}
        """Member ids that were assigned and not used yet, with their deadlines (ms).
        Invariant: disjoint from `members`."""
        self.awaiting_join: dict[str, Reply[JoinResult]] = {}
        """Waiting joins. Invariant: the keys are members."""
        self.awaiting_sync: dict[str, Reply[SyncResult]] = {}
        """Waiting syncs. Invariant: the keys are members."""
        self.leader: str | None = None
        """Invariant: a member, or None without members."""
        self.protocol_type: str | None = None
        """None for a group that never had members."""
        self._supporters: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.members)

    def __contains__(self, member_id: object) -> bool:
        return member_id in self.members

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self.members.values()))

    def __getitem__(self, member_id: str) -> Member:
        return self.members[member_id]

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member; the first one becomes the leader and sets the protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._supporters.update(_names(member.protocols))
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id; its waiting requests must have been answered."""
        self.pending.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._supporters.subtract(_names(member.protocols))
        self.awaiting_join.pop(member_id, None)
        self.awaiting_sync.pop(member_id, None)
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace_static(self, old_member_id: str, new_member_id: str) -> Member:
        """Give a static member a new id; it stays leader if it was."""
        member = self.members.pop(old_member_id)
        member.member_id = new_member_id
        self.members[new_member_id] = member
        assert member.group_instance_id is not None  # noqa: S101
        self.static_members[member.group_instance_id] = new_member_id
        if self.leader == old_member_id:
            self.leader = new_member_id
        return member

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        """Set the protocols of a member."""
        self._supporters.subtract(_names(member.protocols))
        member.protocols = protocols
        self._supporters.update(_names(protocols))

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a client with these protocols could join the current members."""
        return self.protocol_type == protocol_type and any(
            self._supporters[name] == len(self.members) for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The protocol that most members prefer, of those that all support."""
        candidates = {n for n, count in self._supporters.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def check_current(self, member_id: str, group_instance_id: str | None) -> None:
        """ApiError unless this is a member and the owner of its instance id."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)

    def have_all_joined(self) -> bool:
        """Whether all members have joined and no assigned id is pending."""
        return len(self.awaiting_join) == len(self.members) and not self.pending

    def elect_joined_leader(self) -> bool:
        """Choose a leader that has joined; False if no member has."""
        if self.leader in self.awaiting_join:
            return True
        self.leader = next(iter(self.awaiting_join), self.leader)
        return self.leader in self.awaiting_join

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def joined_members(self, protocol_name: str) -> tuple[JoinedMember, ...]:
        """The members for the leader's JoinGroup response."""
        return tuple(
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(protocol_name))
            for member in self.members.values()
        )

    def await_join(self, member_id: str, reply: Reply[JoinResult]) -> None:
        """Keep a join until the rebalance completes. One of the same member that waits already is
        answered: its client has abandoned it, and it must not be kept for ever."""
        self.reply_join(member_id, JoinResult(member_id, ErrorCode.REBALANCE_IN_PROGRESS))
        self.awaiting_join[member_id] = reply

    def await_sync(self, member_id: str, reply: Reply[SyncResult]) -> None:
        """Keep a sync until the assignment is stored; an earlier one of the member is answered."""
        self.reply_sync(member_id, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        self.awaiting_sync[member_id] = reply

    def reply_join(self, member_id: str, result: JoinResult) -> None:
        """Answer the waiting join of a member, if there is one."""
        reply = self.awaiting_join.pop(member_id, None)
        if reply is not None:
            reply.set_result(result)

    def reply_sync(self, member_id: str, result: SyncResult) -> bool:
        """Answer the waiting sync of a member; False if none waits."""
        reply = self.awaiting_sync.pop(member_id, None)
        if reply is not None:
            reply.set_result(result)
        return reply is not None


def _names(protocols: Protocols) -> set[str]:
    return {name for name, _ in protocols}
