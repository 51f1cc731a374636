"""The asyncio shell around the groups: it finds them, turns replies into futures, owns the timers,
appends what they leave to be stored, and reads them back when this broker becomes their leader.

After every call into a group `_settle` takes away what is to be stored and sets the group's one
timer to its next deadline. Heartbeats and commits only move deadlines on, so they leave the timer
alone: when it fires too early, nothing is due and it is set again.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.errors import group_error
from broker.group.group import Assignment, Group, StoreGroup
from broker.group.joining import join
from broker.group.member import UNKNOWN_MEMBER_ID, JoiningMember, JoinResult, SyncResult
from broker.group.offset_manager import OffsetManager
from broker.group.records import build_group_batch
from broker.group.registry import GroupRegistry
from broker.group.replay import Replay
from broker.group.states import DEAD, STABLE, GroupState
from broker.group.storage import OffsetsTopic, VerifyTransaction

logger = logging.getLogger(__name__)

CLASSIC_GROUP_TYPE = "classic"

_LOAD_SLICE_S = 0.01
"""How long a load may keep the event loop before others have their turn."""

ResultT = TypeVar("ResultT")


class Timer(Protocol):
    """What a timer can do."""

    def cancel(self) -> None:
        """Never fire."""
        ...


CallLater = Callable[[float, Callable[[], None]], Timer]


@dataclass(frozen=True, slots=True)
class _FutureReply(Generic[ResultT]):
    """A reply somebody awaits, or has given up awaiting."""

    future: asyncio.Future[ResultT]

    def set_result(self, result: ResultT) -> None:
        if not self.future.done():
            self.future.set_result(result)


class LeavingMember(NamedTuple):
    """One of those that leave."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class DescribedMember(NamedTuple):
    """A member as it is shown; metadata and assignment only of a stable group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


class GroupDescription(NamedTuple):
    """A group as it is shown."""

    state: str
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class GroupCoordinator:
    """See the module. `offsets` is the other half: commits and fetches."""

    def __init__(
        self,
        config: GroupConfig,
        topic: OffsetsTopic,
        clock: Clock,
        verify_transaction: VerifyTransaction | None = None,
        call_later: CallLater | None = None,
    ) -> None:
        self.config = config
        self.registry = GroupRegistry(config, topic, clock)
        self.offsets = OffsetManager(self.registry, verify_transaction)
        self._call_later = call_later
        self._timers: dict[str, Timer] = {}
        """By group id, for groups that have a deadline."""
        self._appends: set[asyncio.Task[None]] = set()
        """Groups on their way into the log."""
        self._expiry: asyncio.Task[None] | None = None

    # Start and stop

    def start(self) -> None:
        """Answer from now on, and let offsets expire."""
        self.registry.is_active = True
        self._expiry = asyncio.get_running_loop().create_task(self._expire_offsets())

    async def stop(self) -> None:
        """Answer no more; appends under way are finished."""
        self.registry.is_active = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._expiry is not None:
            self._expiry.cancel()
            await asyncio.wait([self._expiry])
        if self._appends:
            await asyncio.wait(self._appends)
        await self.offsets.stop()

    async def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition now: read its groups, then answer for them."""
        if not self.registry.begin_loading(partition, leader_epoch):
            return
        replay = Replay()
        try:
            await self._read(partition, leader_epoch, replay)
        except ApiError:
            logger.exception("could not read all groups partition=%s", partition)
        if not self.registry.is_being_loaded(partition, leader_epoch):
            return  # taken away while it was read
        groups = replay.groups(self.registry.new_group)
        self.registry.finish_loading(partition, groups)
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
        """Another broker leads the partition now; None: the partition is gone from here."""
        for group in self.registry.take_away(partition, leader_epoch):
            self.offsets.on_unloaded(group)
            self._settle(group)

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic whose leader coordinates the group."""
        return self.registry.partition_for(group_id)

    # Membership

    def join(self, group_id: str, joining: JoiningMember) -> asyncio.Future[JoinResult]:
        """Done when the group has decided; that may take as long as its rebalance timeout."""
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
        """`member` is member id, group instance id, generation; for the rest see Group.sync."""
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
        """NONE or REBALANCE_IN_PROGRESS; ApiError for one that is not a member."""
        try:
            self.registry.check(group_id)
        except ApiError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ErrorCode.NONE  # whether it is a member will be seen
            raise
        return self._member_group(group_id).heartbeat(member_id, group_instance_id, generation_id)

    def leave(self, group_id: str, members: Sequence[LeavingMember]) -> list[ErrorCode]:
        """Remove members; gives the error of each. ApiError if the group cannot be asked."""
        self.registry.check(group_id)
        group = self.registry.find(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(members)
        errors = [_leave(group, member) for member in members]
        self._settle(group)
        return errors

    def _member_group(self, group_id: str) -> Group:
        """The group of one who says that it is a member."""
        group = self.registry.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    # Administration

    def list_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> tuple[ErrorCode, list[Group]]:
        """The groups in these states and of these types (none named: all).

        COORDINATOR_LOAD_IN_PROGRESS comes with the groups known so far.
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
        """The group; one that is not there is Dead. ApiError if this broker cannot tell."""
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
        """Store what the group left to be stored; set its timer."""
        to_store, group.to_store = group.to_store, []
        for store in to_store:
            self._spawn(self._store(group, store, self.registry.clock.now_ms()))
        self._set_timer(group)

    async def _store(self, group: Group, store: StoreGroup, now_ms: int) -> None:
        codec = self.config.offsets_topic_compression_codec
        batch = build_group_batch(group.group_id, store.value, now_ms, codec)
        error = ErrorCode.UNKNOWN_SERVER_ERROR  # also of what is no ApiError: nobody waits for ever
        try:
            await self.registry.topic.append(self.partition_for(group.group_id), batch)
            error = ErrorCode.NONE
        except ApiError as failure:
            error = group_error(failure.code)
            logger.warning("group not stored group=%s error=%s", group.group_id, failure)
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
            await self.offsets.expire()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._appends.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._appends.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("a group could not be stored", exc_info=error)


def _sync_error(code: ErrorCode) -> ErrorCode:
    """Loading has lost the rebalance: join again. Old clients do not know the other code."""
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
