"""The asyncio shell around groups: lookup, futures for replies, timers, appends and loading.

After every call into a group, `_settle` appends the records it left to store and sets its timer to
its next deadline; a group has one timer. Heartbeats and commits only postpone deadlines, so they do
not touch the timer: when it fires too early, nothing is due and it is set again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.errors import group_error
from broker.group.group import Assignment, Group, StoreGroup
from broker.group.joining import join
from broker.group.member import UNKNOWN_MEMBER_ID, JoiningMember, JoinResult, SyncResult
from broker.group.offset_manager import OffsetManager, VerifyTransaction
from broker.group.records import build_group_batch
from broker.group.registry import GroupRegistry
from broker.group.replay import Replay
from broker.group.states import DEAD, STABLE, GroupState
from broker.replica.coordinator_topic import CoordinatorTopic
from broker.tasks import TaskSet

logger = logging.getLogger(__name__)

CLASSIC_GROUP_TYPE = "classic"

_LOAD_SLICE_S = 0.01
"""How long a load may occupy the event loop before other tasks get a turn."""

ResultT = TypeVar("ResultT")


class Timer(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None:
        """Prevent the timer from firing."""
        ...


CallLater = Callable[[float, Callable[[], None]], Timer]


@dataclass(frozen=True, slots=True)
class _FutureReply(Generic[ResultT]):
    """A reply that completes a future, unless its request was cancelled."""

    future: asyncio.Future[ResultT]

    def set_result(self, result: ResultT) -> None:
        if not self.future.done():
            self.future.set_result(result)


class LeavingMember(NamedTuple):
    """One member of a LeaveGroup request."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class DescribedMember(NamedTuple):
    """A member in a description; metadata and assignment only if the group is stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


class GroupDescription(NamedTuple):
    """The description of a group."""

    state: str
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class GroupCoordinator:
    """See the module. Field `offsets` handles offset commits, fetches and deletions."""

    def __init__(
        self,
        config: GroupConfig,
        topic: CoordinatorTopic,
        clock: Clock,
        verify_transaction: VerifyTransaction | None = None,
        call_later: CallLater | None = None,
    ) -> None:
        self.config = config
        self.registry = GroupRegistry(config, topic, clock)
        self.offsets = OffsetManager(self.registry, verify_transaction)
        self._call_later = call_later
        self._timers: dict[str, Timer] = {}
        """By group id. Invariant: only groups with a deadline have one."""
        self._appends = TaskSet("store groups")
        """Groups on their way into the log."""
        self._expiry: asyncio.Task[None] | None = None

    # Start and stop

    def start(self) -> None:
        """Accept requests, and remove expired offsets periodically."""
        self.registry.is_active = True
        self._expiry = asyncio.get_running_loop().create_task(self._expire_offsets())

    async def stop(self) -> None:
        """Refuse requests; appends in progress are finished."""
        self.registry.is_active = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._expiry is not None:
            self._expiry.cancel()
            await asyncio.wait([self._expiry])
        await self._appends.wait()
        await self.offsets.stop()

    async def load(self, partition: int, leader_epoch: int) -> None:
        """Load the groups of a partition that this broker leads now, then serve them."""
        if not self.registry.begin_loading(partition, leader_epoch):
            return
        replay = Replay()
        started_ms = self.registry.clock.now_ms()
        try:
            await self._read(partition, leader_epoch, replay)
        except Exception:  # otherwise the partition would stay loading for ever
            logger.exception("failed to load all groups and offsets partition=%s", partition)
        if not self.registry.is_being_loaded(partition, leader_epoch):
            return  # unloaded while it was read
        groups = replay.groups(self.registry.new_group)
        self.registry.finish_loading(partition, groups)
        self.registry.load_times.record(started_ms, self.registry.clock.now_ms())
        for group in groups:
            self.offsets.on_loaded(group)
            group.on_loaded()
            self._settle(group)
        logger.debug("loaded groups partition=%s groups=%s", partition, len(groups))

    async def _read(self, partition: int, leader_epoch: int, replay: Replay) -> None:
        loop = asyncio.get_running_loop()
        turn_ends = loop.time() + _LOAD_SLICE_S
        for batch in self.registry.topic.read(partition):
            replay.apply(batch)
            if loop.time() >= turn_ends:
                await asyncio.sleep(0)
                turn_ends = loop.time() + _LOAD_SLICE_S
                if not self.registry.is_being_loaded(partition, leader_epoch):
                    return

    def unload(self, partition: int, leader_epoch: int | None) -> None:
        """Unload a partition that another broker leads now (no epoch: its replica was removed)."""
        for group in self.registry.unload(partition, leader_epoch):
            self.offsets.on_unloaded(group)
            self._settle(group)

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic whose leader coordinates the group."""
        return self.registry.partition_for(group_id)

    # Membership

    def join(self, group_id: str, joining: JoiningMember) -> asyncio.Future[JoinResult]:
        """Join a group; completes with the rebalance, after at most the rebalance timeout."""
        future: asyncio.Future[JoinResult] = asyncio.get_running_loop().create_future()
        try:
            self._join(group_id, joining, _FutureReply(future))
        except ApiError as error:
            future.set_result(JoinResult(joining.member_id, error.code))
        return future

    def _join(self, group_id: str, joining: JoiningMember, reply: _FutureReply[JoinResult]) -> None:
        self.registry.check(group_id)
        shortest = self.config.group_min_session_timeout_ms
        longest = self.config.group_max_session_timeout_ms
        if not shortest <= joining.session_timeout_ms <= longest:
            raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
        if joining.member_id == UNKNOWN_MEMBER_ID:
            group = self.registry.find_or_create(group_id)
        else:
            group = self._member_group(group_id)
        join(group, joining, reply)
        self._settle(group)

    def sync(
        self,
        group_id: str,
        member: tuple[str, str | None, int],
        protocol: tuple[str | None, str | None],
        assignment: Assignment,
    ) -> asyncio.Future[SyncResult]:
        """Sync; `member` is member id, group instance id and generation. See Group.sync."""
        future: asyncio.Future[SyncResult] = asyncio.get_running_loop().create_future()
        try:
            self.registry.check(group_id)
            group = self._member_group(group_id)
            group.sync(*member, protocol, assignment, _FutureReply(future))
            self._settle(group)
        except ApiError as error:
            future.set_result(SyncResult(_sync_error(error.code)))
        return future

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> ErrorCode:
        """NONE or REBALANCE_IN_PROGRESS; ApiError if it is not a member."""
        try:
            self.registry.check(group_id)
        except ApiError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ErrorCode.NONE  # whether it is a member is known after loading
            raise
        return self._member_group(group_id).heartbeat(member_id, group_instance_id, generation_id)

    def leave(self, group_id: str, members: Sequence[LeavingMember]) -> list[ErrorCode]:
        """Remove members; returns the error of each. ApiError if the group cannot be served."""
        self.registry.check(group_id)
        group = self.registry.find(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(members)
        errors = [_leave(group, member) for member in members]
        self._settle(group)
        return errors

    def _member_group(self, group_id: str) -> Group:
        """The group of a client that claims to be a member; UNKNOWN_MEMBER_ID if unknown."""
        group = self.registry.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    # Administration

    def list_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> tuple[ErrorCode, list[Group]]:
        """The groups in these states and of these types; empty filters match all.

        COORDINATOR_LOAD_IN_PROGRESS is returned together with the groups loaded so far.
        """
        if not self.registry.is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        is_loading = self.registry.is_loading
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE
        if wanted_types and CLASSIC_GROUP_TYPE not in wanted_types:
            return error, []
        groups = self.registry.groups.values()
        return error, [
            group for group in groups if not wanted_states or group.state.lower() in wanted_states
        ]

    def describe(self, group_id: str) -> GroupDescription:
        """The description of a group; an unknown one is Dead. ApiError if it cannot be served."""
        self.registry.check(group_id, may_be_empty=True)
        group = self.registry.find(group_id)
        if group is None:
            return GroupDescription(GroupState.DEAD.value)
        is_stable = group.state is STABLE
        return GroupDescription(
            group.state.value,
            group.membership.protocol_type or "",
            (group.protocol_name or "") if is_stable else "",
            tuple(_described_members(group)),
        )

    # Timers and tasks

    def _settle(self, group: Group) -> None:
        """Append the records that the group left to store, and set its timer."""
        to_store, group.to_store = group.to_store, []
        for store in to_store:
            self._appends.spawn(self._store(group, store, self.registry.clock.now_ms()))
        self._set_timer(group)

    async def _store(self, group: Group, store: StoreGroup, now_ms: int) -> None:
        codec = self.config.offsets_topic_compression_codec
        batch = build_group_batch(group.group_id, store.value, now_ms, codec)
        error = (
            ErrorCode.UNKNOWN_SERVER_ERROR
        )  # also for unexpected errors, so that every request is answered
        try:
            await self.registry.topic.append(self.partition_for(group.group_id), batch)
            error = ErrorCode.NONE
        except ApiError as failure:
            error = group_error(failure.code)
            logger.warning("cannot store group group=%s error=%s", group.group_id, failure)
        finally:
            store.on_stored(error)
            self._settle(group)

    def _set_timer(self, group: Group) -> None:
        timer = self._timers.pop(group.group_id, None)
        if timer is not None:
            timer.cancel()
        deadline_ms = group.next_deadline_ms()
        if deadline_ms is None or group.state is DEAD:
            return
        delay_s = max(deadline_ms - group.now_ms(), 0) / 1000
        call_later = self._call_later or asyncio.get_running_loop().call_later
        self._timers[group.group_id] = call_later(delay_s, lambda: self._on_timer(group))

    def _on_timer(self, group: Group) -> None:
        self._timers.pop(group.group_id, None)
        group.expire()
        self._settle(group)

    async def _expire_offsets(self) -> None:
        while True:
            await asyncio.sleep(self.config.offsets_retention_check_interval_ms / 1000)
            try:
                await self.offsets.expire()
            except Exception:  # one failure must not end the periodic removal
                logger.exception("failed to remove expired offsets")


def _sync_error(code: ErrorCode) -> ErrorCode:
    """Loading loses the rebalance: members must join again. Old clients know only this code."""
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return code


def _leave(group: Group, member: LeavingMember) -> ErrorCode:
    try:
        group.leave(member.member_id, member.group_instance_id, member.reason or "not provided")
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def _described_members(group: Group) -> Iterable[DescribedMember]:
    for member in group.membership:
        shown = DescribedMember(
            member.member_id, member.group_instance_id, member.client_id, member.client_host
        )
        if group.state is STABLE and group.protocol_name is not None:
            metadata = member.metadata(group.protocol_name)
            shown = shown._replace(metadata=metadata, assignment=member.assignment)
        yield shown
