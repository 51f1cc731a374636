"""Invariants of a group under random requests; every request is answered eventually."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.group import Group, StoreGroup
from broker.group.joining import join
from broker.group.member import JoinResult
from broker.group.replay import restore
from broker.group.states import EMPTY, PREPARING_REBALANCE, STABLE
from tests.group.support import joining

CLIENTS = st.sampled_from(["a", "b", "c", "d"])
PROTOCOLS = st.sampled_from([("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",)])
MAX_SIZE = 3


class Slot:
    """A reply that keeps its result, and checks that there is only one."""

    def __init__(self, on_result: Callable[[Any], None] = lambda result: None) -> None:
        self.result: Any = None
        self._on_result = on_result

    def set_result(self, result: Any) -> None:
        assert self.result is None, "answered twice"
        self.result = result
        self._on_result(result)


class GroupMachine(RuleBasedStateMachine):
    """Clients that join, sync, send heartbeats, leave and go silent; appends that may fail."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock(1_000_000)
        config = GroupConfig(group_max_size=MAX_SIZE)
        self.group = Group("g", config, self.clock)
        self.slots: list[Slot] = []
        self.known: dict[str, tuple[str, int]] = {}
        self.generation_id = 0

    def slot(self, on_result: Callable[[Any], None] = lambda result: None) -> Slot:
        slot = Slot(on_result)
        self.slots.append(slot)
        return slot

    @rule(
        name=CLIENTS,
        protocols=PROTOCOLS,
        is_static=st.booleans(),
        as_new=st.booleans(),
        require_id=st.booleans(),
        can_skip=st.booleans(),
    )
    def join(
        self,
        name: str,
        protocols: tuple[str, ...],
        is_static: bool,
        as_new: bool,
        require_id: bool,
        can_skip: bool,
    ) -> None:
        def remember(result: JoinResult) -> None:
            self.known[name] = (result.member_id, result.generation_id)

        request = joining(
            client_id=name,
            member_id="" if as_new else self.known.get(name, ("", 0))[0],
            group_instance_id=name if is_static else None,
            protocols=tuple((protocol, b"") for protocol in protocols),
            protocol_type="other",
            require_known_member_id=require_id,
            can_skip_assignment=can_skip,
        )
        slot = self.slot(remember)
        try:
            join(self.group, request, slot)
        except ApiError:
            self.slots.remove(slot)

    @rule(name=CLIENTS, is_static=st.booleans())
    def sync(self, name: str, is_static: bool) -> None:
        member_id, generation_id = self.known.get(name, ("", 0))
        instance_id = name if is_static else None
        slot = self.slot()
        try:
            self.group.sync(member_id, instance_id, generation_id, (None, None), {}, slot)
        except ApiError:
            self.slots.remove(slot)

    @rule(name=CLIENTS)
    def heartbeat(self, name: str) -> None:
        member_id, generation_id = self.known.get(name, ("", 0))
        try:
            code = self.group.heartbeat(member_id, None, generation_id)
        except ApiError:
            return
        assert (code is ErrorCode.REBALANCE_IN_PROGRESS) == (
            self.group.state is PREPARING_REBALANCE
        )

    @rule(name=CLIENTS, by_instance=st.booleans())
    def leave(self, name: str, by_instance: bool) -> None:
        member_id = "" if by_instance else self.known.get(name, ("", 0))[0]
        try:
            self.group.leave(member_id, name if by_instance else None, "test")
        except ApiError:
            return
        assert member_id not in self.group.membership

    @rule(fails=st.booleans())
    def store(self, fails: bool) -> None:
        """Complete the append of the oldest record."""
        if self.group.to_store:
            self.stored(self.group.to_store.pop(0), fails)

    def stored(self, store: StoreGroup, fails: bool) -> None:
        self.check_record(store)
        store.on_stored(ErrorCode.NOT_COORDINATOR if fails else ErrorCode.NONE)

    def check_record(self, store: StoreGroup) -> None:
        """Check that the record restores a group with valid invariants."""
        copy = Group("g", self.group.config, self.clock)
        restore(copy, store.value)
        check_invariants(copy)

    @rule(ms=st.sampled_from([1, 2_999, 3_000, 10_000, 60_000, 300_000]))
    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.group.expire()

    @invariant()
    def holds_together(self) -> None:
        check_invariants(self.group)
        assert self.group.generation_id >= self.generation_id
        self.generation_id = self.group.generation_id

    def teardown(self) -> None:
        """All clients go silent: the group becomes empty, and all requests are answered."""
        if not hasattr(self, "group"):
            return
        for _ in range(100):
            while self.group.to_store:
                self.stored(self.group.to_store.pop(0), fails=False)
            deadline_ms = self.group.next_deadline_ms()
            if deadline_ms is None:
                break
            self.clock.advance(max(deadline_ms - self.group.now_ms(), 0))
            self.group.expire()
        assert self.group.state is EMPTY
        assert not [slot for slot in self.slots if slot.result is None]


def check_invariants(group: Group) -> None:
    """Check the invariants in the docstrings of Group and Membership."""
    membership = group.membership
    members = set(membership.members)
    assert set(membership.static_members.values()) <= members
    assert set(membership.awaiting_join) <= members
    assert set(membership.awaiting_sync) <= members
    assert not set(membership.pending) & members
    assert group.pending_sync <= members
    assert (membership.leader in members) if members else True
    assert (group.join_deadline is not None) == (group.state is PREPARING_REBALANCE)
    assert (group.state is EMPTY) <= (not members)
    assert len(members) <= MAX_SIZE or group.state is PREPARING_REBALANCE
    for member in membership:
        assert membership.members[member.member_id] is member
    if group.state is STABLE:
        assert group.protocol_name is not None
        assert all(member.metadata(group.protocol_name) is not None for member in membership)
    if members:
        assert membership.select_protocol()


TestGroup = GroupMachine.TestCase
TestGroup.settings = settings(max_examples=60, stateful_step_count=30)
