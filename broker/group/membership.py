"""Who is in a group: members, static instances, pending ids, the leader, the common protocols.

Bookkeeping only; when something has to happen because of it is decided in `group.py`.
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
        """Ids given out and not yet used, with the deadline (ms) for using them.
        Invariant: disjoint from `members`."""
        self.awaiting_join: dict[str, Reply[JoinResult]] = {}
        """Joins to be answered. Invariant: the keys are members."""
        self.awaiting_sync: dict[str, Reply[SyncResult]] = {}
        """Syncs to be answered. Invariant: the keys are members."""
        self.leader: str | None = None
        """Invariant: a member, as long as there is one."""
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
        """A new member; the first one leads and sets the protocol type."""
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
        """Forget a member or a pending id; an answer it waits for must have been given."""
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
        """Give a static member a new id, its leadership included."""
        member = self.members.pop(old_member_id)
        member.member_id = new_member_id
        self.members[new_member_id] = member
        assert member.group_instance_id is not None  # noqa: S101
        self.static_members[member.group_instance_id] = new_member_id
        if self.leader == old_member_id:
            self.leader = new_member_id
        return member

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        """What a member knows now."""
        self._supporters.subtract(_names(member.protocols))
        member.protocols = protocols
        self._supporters.update(_names(protocols))

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether one who knows these could join the present members."""
        return self.protocol_type == protocol_type and any(
            self._supporters[name] == len(self.members) for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The protocol most members like best, of those that all know."""
        candidates = {n for n, count in self._supporters.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def check_current(self, member_id: str, group_instance_id: str | None) -> None:
        """ApiError unless this is a member, and the one that holds its instance id now."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)

    def have_all_joined(self) -> bool:
        """Whether nobody is missing, those included that were only given an id."""
        return len(self.awaiting_join) == len(self.members) and not self.pending

    def elect_joined_leader(self) -> bool:
        """Make sure the leader is one who joined; False if nobody did."""
        if self.leader in self.awaiting_join:
            return True
        self.leader = next(iter(self.awaiting_join), self.leader)
        return self.leader in self.awaiting_join

    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def joined_members(self, protocol_name: str) -> tuple[JoinedMember, ...]:
        """The members as their leader is told of them."""
        return tuple(
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(protocol_name))
            for member in self.members.values()
        )

    def await_join(self, member_id: str, reply: Reply[JoinResult]) -> None:
        """Answer this join later. One that waited already is sent away: its client, or its
        connection, has given it up, and it must not be kept for ever."""
        self.reply_join(member_id, JoinResult(member_id, ErrorCode.REBALANCE_IN_PROGRESS))
        self.awaiting_join[member_id] = reply

    def await_sync(self, member_id: str, reply: Reply[SyncResult]) -> None:
        """Answer this sync later, and the one that waited already now."""
        self.reply_sync(member_id, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        self.awaiting_sync[member_id] = reply

    def reply_join(self, member_id: str, result: JoinResult) -> None:
        """Answer a waiting join, if there is one."""
        reply = self.awaiting_join.pop(member_id, None)
        if reply is not None:
            reply.set_result(result)

    def reply_sync(self, member_id: str, result: SyncResult) -> bool:
        """Answer a waiting sync; False if there is none."""
        reply = self.awaiting_sync.pop(member_id, None)
        if reply is not None:
            reply.set_result(result)
        return reply is not None


def _names(protocols: Protocols) -> set[str]:
    return {name for name, _ in protocols}
