"""One fetcher: this broker as follower of one other broker, for some of its partitions.

One request is under way at a time: what the answer brought is appended before the next is sent, and
that next one tells the leader how far we have come. The leader holds it back until there is more
(`replica.fetch.wait.max.ms`), so an idle fetcher costs two small requests a second, however many
partitions it has: both sides keep a session, and neither looks at what has not changed.

What the leader says of a partition, and what follows:

    records                 append them, take over high watermark and log start offset
    a diverging epoch       cut our log there (KIP-595), ask again
    OFFSET_OUT_OF_RANGE     look where the leader's log begins and ends, cut, ask again
    FENCED_LEADER_EPOCH     we have missed a decision: leave it alone until the controller tells
    anything else           leave it alone for `replica.fetch.backoff.ms`

A partition whose own log fails is given up here: the log directory is offline, or its bytes lie.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.log.leader_epochs import UNDEFINED_EPOCH
from broker.log.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from broker.log.partition_log import PartitionLog
from broker.model import BrokerEpoch, TopicPartition
from broker.net.broker_connection import BrokerConnection, Node
from broker.net.peers import Connect
from broker.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.replica.follower_session import FetchLimits, FollowerSession
from broker.replica.follower_state import FollowerState, cut, truncation_offset
from broker.replica.partition import Partition
from broker.replica.throttle import Throttle

logger = logging.getLogger(__name__)


class FetcherSettings(NamedTuple):
    """Of all fetchers: `replica.fetch.*` and `replica.socket.timeout.ms`."""

    limits: FetchLimits
    backoff_s: float
    timeout_s: float


class FollowerOf(NamedTuple):
    """What every fetcher of a broker shares."""

    broker_id: int
    broker_epoch: BrokerEpoch
    connect: Connect
    settings: FetcherSettings
    throttle: Throttle
    future_log: Callable[[TopicPartition], PartitionLog | None]
    """The copy of a log on its way to another directory, if there is one."""


class ReplicaFetcher:
    """Follows one leader broker.

    Field `_states`: every partition it has. Field `_delayed`: those left alone for a while.
    Invariant: a partition is in the session or delayed.
    """

    def __init__(self, find_leader: Callable[[], Node | None], own: FollowerOf) -> None:
        self._find_leader = find_leader
        self._own = own
        self._connection: BrokerConnection | None = None
        self._session = FollowerSession()
        self._states: dict[TopicPartition, FollowerState] = {}
        self._delayed: dict[TopicPartition, FollowerState] = {}
        self._woken = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def __len__(self) -> int:
        return len(self._states)

    # --- what it follows -------------------------------------------------------------------------

    def add(self, partitions: Iterable[Partition]) -> None:
        """Follow these from where their logs end, in their present leader epoch."""
        for partition in partitions:
            known = self._states.get(partition.name)
            if (
                known is not None
                and known.partition is partition
                and known.leader_epoch == partition.state.leader_epoch
            ):
                continue
            self.remove([partition.name])
            state = self._states[partition.name] = FollowerState(partition)
            if state.last_fetched_epoch == UNDEFINED_EPOCH:
                # Nothing to compare: only what is committed is surely the leader's too.
                self._truncate(state, partition.log.high_watermark)
                state.refresh()
            self._session.change(state)
        self._woken.set()

    def remove(self, names: Iterable[TopicPartition]) -> None:
        """Follow these no more; what is under way for them is dropped when it comes."""
        for name in names:
            state = self._states.pop(name, None)
            if state is not None:
                self._delayed.pop(name, None)
                self._session.forget(state)

    async def stop(self) -> None:
        """Follow nobody any more."""
        self._task.cancel()
        await asyncio.wait([self._task])
        self._disconnect()

    # --- the loop --------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._wait_for_work()
                async with asyncio.timeout(self._own.settings.timeout_s):
                    await self._round()
            except (OSError, ApiError) as error:  # a TimeoutError is an OSError
                logger.info("fetching failed leader=%s: %s", self._find_leader(), error)
                await self._back_off()
            except Exception:
                logger.exception("fetching failed leader=%s", self._find_leader())
                await self._back_off()

    async def _wait_for_work(self) -> None:
        timeout_s = self._return_delayed()
        while self._session.is_empty:
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._woken.wait()
            timeout_s = self._return_delayed()

    def _return_delayed(self) -> float | None:
        """Take up those whose time is over; gives the seconds until the next one's is."""
        if not self._delayed:
            return None
        now_s = asyncio.get_running_loop().time()
        for name, state in list(self._delayed.items()):
            if state.delayed_until_s <= now_s:
                del self._delayed[name]
                self._session.change(state)
        return min((s.delayed_until_s - now_s for s in self._delayed.values()), default=None)

    async def _round(self) -> None:
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await self._connect()
        await self._fetch(connection)

    async def _connect(self) -> BrokerConnection:
        self._session.restart()
        node = self._find_leader()
        if node is None:
            raise ConnectionError("the leader is not in the cluster")
        self._connection = await self._own.connect(node)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _back_off(self) -> None:
        self._disconnect()
        self._session.restart()
        await asyncio.sleep(self._own.settings.backoff_s)

    def _delay(self, state: FollowerState) -> None:
        name = state.partition.name
        if self._states.get(name) is state:
            self._session.forget(state)
            now_s = asyncio.get_running_loop().time()
            state.delayed_until_s = now_s + self._own.settings.backoff_s
            self._delayed[name] = state

    # --- fetching --------------------------------------------------------------------------------

    async def _fetch(self, connection: BrokerConnection) -> None:
        own = self._own
        version = connection.version_for(_ANY_FETCH)
        request = self._session.request(
            version, own.broker_id, own.broker_epoch.value, own.settings.limits
        )
        response = await connection.send(request, version)
        if response.error_code:
            logger.info("a fetch session ended: %s", ErrorCode.name_of(response.error_code))
            self._session.restart()
            if response.error_code not in _SESSION_ERRORS:
                raise ApiError(ErrorCode(response.error_code))
            return
        await self._take_up(connection, response)
        # Only now: where the leader keeps no session, what it answered for is forgotten here.
        self._session.answered(response.session_id)

    async def _take_up(self, connection: BrokerConnection, response: FetchResponse) -> None:
        out_of_range = []
        for topic in response.responses:
            key = topic.topic or topic.topic_id
            for data in topic.partitions:
                state = self._session.find(key, data.partition_index)
                if state is None:
                    continue
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    out_of_range.append(state)
                else:
                    self._process(state, data)
        for state in out_of_range:
            await self._reset(connection, state)

    def _process(self, state: FollowerState, data: PartitionData) -> None:
        if data.error_code:
            self._failed(state, ErrorCode(data.error_code))
            return
        try:
            epoch, end_offset = data.diverging_epoch.epoch, data.diverging_epoch.end_offset
            if epoch >= 0:
                self._truncate(state, truncation_offset(state.partition.log, epoch, end_offset))
            else:
                self._append(state, data)
            self._fetch_on(state)
        except CorruptRecord as error:  # perhaps only on its way: ask once more
            logger.error("corrupt records partition=%s: %s", state.partition.name, error)
            self._delay(state)
        except ApiError as error:
            logger.error("cannot follow partition=%s: %s", state.partition.name, error)
            self.remove([state.partition.name])

    def _append(self, state: FollowerState, data: PartitionData) -> None:
        partition, records = state.partition, data.records
        if records:
            assert isinstance(records, memoryview)  # noqa: S101  # nothing but bytes travels
            partition.append_as_follower(records)
            self._own.throttle.record(partition.name, len(records))
        partition.follow(data.high_watermark, data.log_start_offset)

    def _fetch_on(self, state: FollowerState) -> None:
        """Tell the leader where we are now, with the next request."""
        partition, throttle = state.partition, self._own.throttle
        if not state.refresh():
            return
        is_lagging = state.fetch_offset < partition.leader_high_watermark
        if is_lagging and throttle.holds_back(partition.name):
            self._delay(state)
        else:
            self._session.change(state)

    def _failed(self, state: FollowerState, code: ErrorCode) -> None:
        name = state.partition.name
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            if state.leader_epoch == state.partition.state.leader_epoch:
                logger.info("waiting for the controller's next decision partition=%s", name)
                self.remove([name])
                return
        elif code not in _TRANSIENT:
            logger.error("cannot fetch partition=%s: %s", name, code.name)
        self._delay(state)

    # --- truncating ------------------------------------------------------------------------------

    def _truncate(self, state: FollowerState, offset: int) -> None:
        partition, log = state.partition, state.partition.log
        if offset < log.log_end_offset:
            logger.info("truncating partition=%s offset=%s", partition.name, offset)
        if offset < log.high_watermark:
            logger.warning(
                "truncating below the high watermark partition=%s offset=%s high_watermark=%s",
                partition.name,
                offset,
                log.high_watermark,
            )
        cut(partition, self._own.future_log(partition.name), offset)

    async def _reset(self, connection: BrokerConnection, state: FollowerState) -> None:
        """The leader does not have the offset: it lost its end, or has deleted its beginning."""
        partition = state.partition
        try:
            end = await self._list_offset(connection, state, LATEST_TIMESTAMP)
            start = await self._list_offset(connection, state, EARLIEST_TIMESTAMP)
            if self._states.get(partition.name) is not state:
                return
            log = partition.log
            if end < log.log_end_offset:
                self._truncate(state, end)
            elif start > log.log_end_offset:
                log.truncate_fully_and_start_at(start)
            logger.info("reset partition=%s offset=%s", partition.name, log.log_end_offset)
            self._fetch_on(state)
        except ApiError as error:
            self._failed(state, error.code)

    async def _list_offset(
        self, connection: BrokerConnection, state: FollowerState, timestamp: int
    ) -> int:
        name = state.partition.name
        asked = ListOffsetsPartition(
            partition_index=name.partition,
            current_leader_epoch=state.leader_epoch,
            timestamp=timestamp,
        )
        response = await connection.send(
            ListOffsetsRequest(
                replica_id=self._own.broker_id,
                topics=[ListOffsetsTopic(name=name.topic, partitions=[asked])],
            )
        )
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise ApiError(ErrorCode(answer.error_code), f"{name}: no offset")
        return answer.offset


_ANY_FETCH: Final = FetchRequest()
_SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
_TRANSIENT: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.OFFSET_NOT_AVAILABLE,
)
"""What leaders say while partitions are being made, moved or deleted."""
