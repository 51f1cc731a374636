"""The state machine of one group. It has no I/O: requests and time go in, replies come out.

Requests are method calls. A request that is refused raises ApiError; one that must wait leaves its
`Reply`, which a later event completes. Records to be appended are left in `to_store`; the shell
takes them after every call and reports the outcome to `on_stored`.

Time is kept as deadlines in monotonic milliseconds. `expire` handles all that are due, and
`next_deadline_ms` returns the earliest one; calling `expire` too early does nothing.

    session      heartbeats postpone it; while a join or sync of the member is waiting, its end has
                 no effect (but see Member.is_new)
    pending id   must be used within the session timeout
    join         the first generation waits an initial delay for more members; later ones until all
                 members have joined or the rebalance timeout ends
    sync         members that do not sync within the rebalance timeout are removed

`joining.py` has the rules of JoinGroup, `membership.py` the collections of members, `states.py` the
states and their transitions.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.member import UNKNOWN_MEMBER_ID, JoinResult, Member, Reply, SyncResult
from broker.group.membership import Membership
from broker.group.offsets import GroupOffsets
from broker.group.records import CONSUMER_PROTOCOL_TYPE, read_subscribed_topics
from broker.group.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    TRANSITIONS,
    GroupState,
)
from broker.protocol.messages.group_records import GroupMetadataValue, MemberMetadata

logger = logging.getLogger(__name__)

Assignment = Mapping[str, bytes]
"""The assignment of each member, by member id; opaque to the coordinator."""


@dataclass(frozen=True, slots=True)
class StoreGroup:
    """A group record to append; `on_stored` gets NONE or the error of the append."""

    value: GroupMetadataValue
    on_stored: Callable[[ErrorCode], None]


@dataclass(frozen=True, slots=True)
class JoinDeadline:
    """When the wait for joins ends."""

    at_ms: int
    delay_ms: int
    remaining_ms: int = 0
    """By how much new members can still prolong the initial delay."""
    is_initial: bool = False
    """Whether this is the initial delay, which does not end early when all members joined."""


class Group:
    """See the module. Every public method leaves the group in a consistent state."""

    def __init__(self, group_id: str, config: GroupConfig, clock: Clock) -> None:
        self.group_id = group_id
        self.config = config
        self.state = EMPTY
        self.state_timestamp_ms: int | None = clock.now_ms()
        """When the state was entered; None if an old record does not contain it."""
        self.generation_id = 0
        """Incremented with every completed join. 0: no generation yet, and no record in the log."""
        self.protocol_name: str | None = None
        """The assignment protocol. Invariant: set if the generation has members."""
        self.membership = Membership()
        self.offsets = GroupOffsets()
        self.subscribed_topics: frozenset[str] | None = None
        """The topics that a consumer group subscribes to; None if they are not known."""
        self.pending_sync: set[str] = set()
        """Members of the generation that have not synced yet."""
        self.new_member_added = False
        """Whether a member joined during the initial delay, which can prolong it."""
        self.join_deadline: JoinDeadline | None = None
        """Invariant: set exactly in PREPARING_REBALANCE."""
        self.sync_deadline_ms: int | None = None
        self.to_store: list[StoreGroup] = []
        self._clock = clock

    # Properties

    @property
    def is_consumer_group(self) -> bool:
        """Whether the protocol type is that of consumers, whose metadata can be decoded."""
        return self.membership.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member may subscribe to the topic; True if the subscriptions are not known."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def transition_to(self, state: GroupState) -> None:
        """Enter a state; the table in `states.py` must allow it."""
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} → {state}"  # noqa: S101
        self.state = state
        self.state_timestamp_ms = self._clock.now_ms()
        if state is not PREPARING_REBALANCE:
            self.join_deadline = None

    # Sessions

    def touch(self, member: Member, timeout_ms: int | None = None) -> None:
        """Restart the session of a member that sent a request."""
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        member.session_deadline_ms = self.now_ms() + timeout_ms

    def now_ms(self) -> int:
        """Monotonic milliseconds, the time base of deadlines."""
        return round(self._clock.monotonic() * 1000)

    def heartbeat(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> ErrorCode:
        """NONE, or REBALANCE_IN_PROGRESS if the member must rejoin; ApiError if it is unknown."""
        self.check_generation(member_id, group_instance_id, generation_id)
        self.touch(self.membership[member_id])
        if self.state is PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def check_generation(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> None:
        """ApiError unless this is a member of the current generation."""
        self.check_alive()
        self.membership.check_current(member_id, group_instance_id)
        if generation_id != self.generation_id:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)

    def check_alive(self) -> None:
        """COORDINATOR_NOT_AVAILABLE if the group is dead: clients find the coordinator again."""
        if self.state is DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def check_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        is_transactional: bool,
    ) -> None:
        """ApiError unless a client with these ids may commit offsets.

        A. Generation -1 in an empty group: an admin client, or a consumer without group management.
        B. Any member id, instance id or generation: it must be a current member.
        C. None of them while there are members: only transactions of old clients, which send none.
        """
        self.check_alive()
        if generation_id < 0 and self.state is EMPTY:
            return  # A
        if generation_id >= 0 or member_id != UNKNOWN_MEMBER_ID or group_instance_id is not None:
            self.check_generation(member_id, group_instance_id, generation_id)  # B
        elif not is_transactional:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)  # C
        if is_transactional:
            return
        if self.state is COMPLETING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self.touch(self.membership[member_id])

    # Syncing

    def sync(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        protocol: tuple[str | None, str | None],
        assignment: Assignment,
        reply: Reply[SyncResult],
    ) -> None:
        """Sync a member; the leader's request has the assignment, which is stored first.

        `protocol` is the type and name that the client sent, None where it sent none.
        """
        self.check_generation(member_id, group_instance_id, generation_id)
        self._check_protocol(*protocol)
        if self.state is PREPARING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._remove_pending_sync(member_id)
        if self.state is STABLE:
            member = self.membership[member_id]
            reply.set_result(self._sync_result(member))
            self.touch(member)
            return
        self.membership.await_sync(member_id, reply)
        if self.membership.leader == member_id:
            self._store_assignment(assignment)

    def _check_protocol(self, protocol_type: str | None, protocol_name: str | None) -> None:
        ours = (self.membership.protocol_type, self.protocol_name)
        for said, known in zip((protocol_type, protocol_name), ours, strict=True):
            if said is not None and said != known:
                raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _sync_result(self, member: Member) -> SyncResult:
        return SyncResult(
            ErrorCode.NONE, self.membership.protocol_type, self.protocol_name, member.assignment
        )

    def _store_assignment(self, assignment: Assignment) -> None:
        generation_id = self.generation_id
        # Members that the leader left out get an empty assignment; unknown ids are dropped.
        complete = {m.member_id: assignment.get(m.member_id, b"") for m in self.membership}

        def on_stored(error: ErrorCode) -> None:
            # If members changed meanwhile, another rebalance is in progress.
            if self.state is COMPLETING_REBALANCE and self.generation_id == generation_id:
                self._complete_sync(complete, error)

        self.store(complete, on_stored)

    def _complete_sync(self, assignment: Assignment, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self._cancel_syncs(error)
            self.maybe_prepare_rebalance(f"{error.name} when storing the assignment")
            return
        for member in self.membership:
            member.assignment = assignment[member.member_id]
            if self.membership.reply_sync(member.member_id, self._sync_result(member)):
                # Its session may have ended without effect while the sync waited.
                self.touch(member)
        self.transition_to(STABLE)

    def _cancel_syncs(self, error: ErrorCode) -> None:
        for member in self.membership:
            member.assignment = b""
            if self.membership.reply_sync(member.member_id, SyncResult(error)):
                self.touch(member)

    def _remove_pending_sync(self, member_id: str) -> None:
        self.pending_sync.discard(member_id)
        if not self.pending_sync:
            self.sync_deadline_ms = None

    # Rebalancing

    def maybe_prepare_rebalance(self, reason: str) -> None:
        """Start a rebalance, unless one is in progress."""
        if PREPARING_REBALANCE in TRANSITIONS[self.state]:
            self.prepare_rebalance(reason)

    def prepare_rebalance(self, reason: str) -> None:
        """Start a rebalance; waiting syncs are answered with REBALANCE_IN_PROGRESS."""
        if self.state is COMPLETING_REBALANCE:
            self._cancel_syncs(ErrorCode.REBALANCE_IN_PROGRESS)
        self.pending_sync.clear()
        self.sync_deadline_ms = None
        deadline = self._initial_join_deadline() if self.state is EMPTY else self._join_deadline()
        self.transition_to(PREPARING_REBALANCE)
        self.join_deadline = deadline
        logger.info(
            "preparing to rebalance group=%s generation=%s members=%s reason=%s",
            self.group_id,
            self.generation_id,
            len(self.membership),
            reason,
        )
        self.maybe_complete_join()

    def _join_deadline(self) -> JoinDeadline:
        timeout_ms = self.membership.rebalance_timeout_ms()
        return JoinDeadline(self.now_ms() + timeout_ms, timeout_ms)

    def _initial_join_deadline(self) -> JoinDeadline:
        delay_ms = self.config.group_initial_rebalance_delay_ms
        remaining_ms = max(self.membership.rebalance_timeout_ms() - delay_ms, 0)
        return JoinDeadline(self.now_ms() + delay_ms, delay_ms, remaining_ms, is_initial=True)

    def maybe_complete_join(self) -> None:
        """Complete the join if all members have joined."""
        deadline = self.join_deadline
        if deadline and not deadline.is_initial and self.membership.have_all_joined():
            self._complete_join()

    def _expire_join(self, deadline: JoinDeadline) -> None:
        if not (deadline.is_initial and self.new_member_added and deadline.remaining_ms):
            self._complete_join()
            return
        self.new_member_added = False
        delay_ms = min(self.config.group_initial_rebalance_delay_ms, deadline.remaining_ms)
        remaining_ms = max(deadline.remaining_ms - deadline.delay_ms, 0)
        self.join_deadline = JoinDeadline(
            self.now_ms() + delay_ms, delay_ms, remaining_ms, is_initial=True
        )

    def _complete_join(self) -> None:
        """Start the next generation without dynamic members that did not join; static ones stay."""
        for member in self.membership:
            if member.member_id not in self.membership.awaiting_join and not member.is_static:
                logger.info(
                    "removing member that did not rejoin group=%s member=%s",
                    self.group_id,
                    member.member_id,
                )
                self.membership.remove(member.member_id)
        if len(self.membership) and not self.membership.elect_joined_leader():
            # Only static members, and none has joined: their sessions end, or they come back.
            logger.warning("no member rejoined group=%s", self.group_id)
            self.join_deadline = self._join_deadline()
            return
        self.generation_id += 1
        if len(self.membership):
            self._begin_generation()
        else:
            self._become_empty()

    def _become_empty(self) -> None:
        self.protocol_name = None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.transition_to(EMPTY)
        logger.info("group is empty group=%s generation=%s", self.group_id, self.generation_id)
        # If this fails, the log keeps the previous generation, whose members time out again.
        self.store({}, lambda error: None)

    def _begin_generation(self) -> None:
        self.protocol_name = self.membership.select_protocol()
        self.subscribed_topics = self.compute_subscribed_topics()
        self.transition_to(COMPLETING_REBALANCE)
        logger.info(
            "stabilized group=%s generation=%s members=%s",
            self.group_id,
            self.generation_id,
            len(self.membership),
        )
        self.pending_sync = set(self.membership.members)
        self.sync_deadline_ms = self.now_ms() + self.membership.rebalance_timeout_ms()
        for member in self.membership:
            self.membership.reply_join(member.member_id, self.join_result(member.member_id))
            self.touch(member)
            member.is_new = False

    def join_result(self, member_id: str) -> JoinResult:
        """The JoinGroup result of a member for this generation; the leader gets all members."""
        is_leader = self.membership.leader == member_id
        assert self.protocol_name is not None  # noqa: S101
        return JoinResult(
            member_id,
            ErrorCode.NONE,
            self.generation_id,
            self.membership.protocol_type,
            self.protocol_name,
            self.membership.leader or "",
            members=self.membership.joined_members(self.protocol_name) if is_leader else (),
        )

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """The topics in the members' subscriptions; None if they cannot be decoded."""
        if not self.is_consumer_group:
            return None
        if not len(self.membership):
            return frozenset()
        if self.protocol_name is None:
            return None
        return read_subscribed_topics(
            self.group_id, (member.metadata(self.protocol_name) for member in self.membership)
        )

    # Leaving

    def leave(self, member_id: str, group_instance_id: str | None, reason: str) -> None:
        """Remove a member or a pending id; without a member id, the owner of the instance id.

        ApiError if it is unknown, or if another member owns the instance id.
        """
        if member_id == UNKNOWN_MEMBER_ID and group_instance_id is not None:
            member_id = self.membership.static_members.get(group_instance_id, UNKNOWN_MEMBER_ID)
        elif member_id in self.membership.pending:
            self._remove_pending(member_id)
            return
        self.membership.check_current(member_id, group_instance_id)
        self._remove_member(member_id, f"member {member_id} leaves, reason: {reason}")

    def _remove_member(self, member_id: str, reason: str) -> None:
        # A new member may be removed while its join waits; the client retries.
        self.membership.reply_join(
            member_id, JoinResult(UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID)
        )
        self.membership.reply_sync(member_id, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        self.membership.remove(member_id)
        self._remove_pending_sync(member_id)
        if self.state in (STABLE, COMPLETING_REBALANCE):
            self.prepare_rebalance(reason)
        else:
            self.maybe_complete_join()

    def _remove_pending(self, member_id: str) -> None:
        self.membership.remove(member_id)
        self.maybe_complete_join()

    # Time

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; None if nothing has a deadline."""
        deadlines = [m.session_deadline_ms for m in self.membership]
        deadlines += self.membership.pending.values()
        deadlines.append(self.sync_deadline_ms)
        if self.join_deadline:
            deadlines.append(self.join_deadline.at_ms)
        return min((at for at in deadlines if at is not None), default=None)

    def expire(self) -> None:
        """Handle all deadlines that are due."""
        now_ms = self.now_ms()
        for member_id, at_ms in list(self.membership.pending.items()):
            if at_ms <= now_ms:
                logger.info("pending member expired group=%s member=%s", self.group_id, member_id)
                self._remove_pending(member_id)
        for member in self.membership:
            if member.session_deadline_ms is not None and member.session_deadline_ms <= now_ms:
                self._expire_session(member)
        if self.join_deadline and self.join_deadline.at_ms <= now_ms:
            self._expire_join(self.join_deadline)
        if self.sync_deadline_ms is not None and self.sync_deadline_ms <= now_ms:
            self._expire_sync()

    def _expire_session(self, member: Member) -> None:
        member_id, membership = member.member_id, self.membership
        is_waiting = member_id in membership.awaiting_join or member_id in membership.awaiting_sync
        if is_waiting and not member.is_new:
            member.session_deadline_ms = None
        elif member_id in membership:
            logger.info("member session expired group=%s member=%s", self.group_id, member_id)
            self._remove_member(member_id, f"session of {member_id} expired")

    def _expire_sync(self) -> None:
        missing = self.pending_sync
        self.pending_sync = set()
        self.sync_deadline_ms = None
        for member_id in missing:
            self.membership.remove(member_id)
        self.prepare_rebalance(f"no sync from {sorted(missing)}")

    # The log

    def store(self, assignment: Assignment, on_stored: Callable[[ErrorCode], None]) -> None:
        """Add a record of the group's current state, with this assignment, to `to_store`."""
        value = GroupMetadataValue(
            protocol_type=self.membership.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.membership.leader,
            current_state_timestamp=-1
            if self.state_timestamp_ms is None
            else self.state_timestamp_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name or ""),
                    assignment=assignment[member.member_id],
                )
                for member in self.membership
            ],
        )
        self.to_store.append(StoreGroup(value, on_stored))

    def on_loaded(self) -> None:
        """Start the sessions after loading; rebalance if there are more than the maximum."""
        if len(self.membership) > self.config.group_max_size:
            self.prepare_rebalance(f"more than {self.config.group_max_size} members were loaded")
        for member in self.membership:
            self.touch(member)

    def unload(self) -> None:
        """Another broker coordinates the group: answer waiting requests with NOT_COORDINATOR."""
        for member in self.membership:
            self.membership.reply_join(
                member.member_id, JoinResult(member.member_id, ErrorCode.NOT_COORDINATOR)
            )
            self.membership.reply_sync(member.member_id, SyncResult(ErrorCode.NOT_COORDINATOR))
            member.session_deadline_ms = None
        self.membership.pending.clear()
        self.pending_sync.clear()
        self.sync_deadline_ms = None
        self.transition_to(DEAD)
