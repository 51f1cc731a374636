"""A replica fetcher: fetches some partitions from one leader broker, and appends them.

One request is in flight at a time. Its records are appended before the next request is sent, and
that next request tells the leader how far the follower has come. The leader delays the response
until there are records (`replica.fetch.wait.max.ms`), so an idle fetcher costs two small requests a
second, however many partitions it has: both sides keep a fetch session, and neither looks at
partitions that have not changed.

A partition is in one of these states; transitions happen only on the event loop:

    fetching   in the session; its position is sent with the next request, or was sent already
    delayed    removed from the session until `replica.fetch.backoff.ms` has passed
    gone       removed from the fetcher; a response that still contains it is ignored

What the response contains for a partition, and what follows:

    records                 append; take over high watermark and log start offset    fetching
    a diverging epoch       truncate (KIP-595)                                        fetching
    OFFSET_OUT_OF_RANGE     compare with the start and end of the leader's log,       fetching
                            truncate or start again there
    FENCED_LEADER_EPOCH     this broker has missed a decision of the controller,      gone
                            which will add the partition again
    corrupt records         perhaps only in transit: fetch once more                  delayed
    another error           fetch again later                                         delayed

A follower over its replication quota is delayed too. If the follower's own log fails (its log
directory is offline, for example), the partition is gone.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.log.leader_epochs import UNDEFINED_EPOCH
from broker.log.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from broker.log.partition_log import PartitionLog
from broker.log.truncation import truncate_fully_and_start_at
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
from broker.replica.follower_state import FollowerState, truncate, truncation_offset
from broker.replica.partition import Partition
from broker.replica.throttle import Throttle

logger = logging.getLogger(__name__)


class FetcherSettings(NamedTuple):
    """Settings of all fetchers: `replica.fetch.*` and `replica.socket.timeout.ms`."""

    limits: FetchLimits
    backoff_s: float
    timeout_s: float


class FetcherContext(NamedTuple):
    """What all fetchers of a broker share."""

    broker_id: int
    broker_epoch: BrokerEpoch
    connect: Connect
    settings: FetcherSettings
    throttle: Throttle
    future_log: Callable[[TopicPartition], PartitionLog | None]
    """The future log of a replica that is being moved to another directory, if there is one."""
    truncating: Callable[[TopicPartition], contextlib.AbstractContextManager[None]]
    """Pauses the cleaner for a partition and corrects its checkpoints (`LogManager.truncating`)."""
    flush: Callable[[Iterable[PartitionLog]], Awaitable[None]]
    """Flush these logs in threads, because of `flush.messages`."""


class ReplicaFetcher:
    """Fetches from one leader broker.

    Field `_states`: every partition of this fetcher.
    Field `_session`: the positions that the leader has been sent, and those that the next request
    must contain.
    Field `_delayed`: partitions that are not fetched for a while. Invariant: every partition is
    either in the session or delayed.
    Field `_connection`: to the leader; None before the first request and after an error.
    Field `_woken`: set when a partition is added; ends the wait of a fetcher without partitions.
    Field `_task`: the loop. Invariant: it ends only when it is cancelled. An error of one request
    costs a backoff, never the fetcher.
    """

    def __init__(self, find_leader: Callable[[], Node | None], context: FetcherContext) -> None:
        # The leader's address is looked up for every connection: the broker may come back with
        # another one.
        self._find_leader = find_leader
        self._context = context
        self._connection: BrokerConnection | None = None
        self._session = FollowerSession()
        self._states: dict[TopicPartition, FollowerState] = {}
        self._delayed: dict[TopicPartition, FollowerState] = {}
        self._woken = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def __len__(self) -> int:
        return len(self._states)

    # --- partitions ------------------------------------------------------------------------------

    def add(self, partitions: Iterable[Partition]) -> None:
        """Fetch these from their log end offsets on, in their present leader epochs.

        A partition that is being fetched in the same epoch already is left as it is.

        Called when LeaderAndIsr has made this broker a follower of the fetcher's leader.
        """
        for partition in partitions:
            known = self._states.get(partition.name)
            if (
                known is not None
                and known.partition is partition
                and known.leader_epoch == partition.state.leader_epoch
            ):
                continue
            # A new epoch gets a new state, which the leader has not been sent yet: data that a
            # response in flight contains for the old epoch is therefore ignored.
            self.remove([partition.name])
            state = self._states[partition.name] = FollowerState(partition)
            if state.last_fetched_epoch == UNDEFINED_EPOCH:
                # Without leader epochs the leader cannot tell where the logs diverge. Only
                # committed records are certain to be in its log too (as before KIP-101).
                self._truncate(state, partition.log.high_watermark)
                state.refresh()
            self._session.change(state)
        self._woken.set()

    def remove(self, names: Iterable[TopicPartition]) -> None:
        """Stop fetching these; data for them in a response to come is ignored.

        After this returns, no batch of this leader is appended any more, so that the replica can
        become leader itself: a response is processed without an await between lookup and append.
        """
        for name in names:
            state = self._states.pop(name, None)
            if state is not None:
                self._delayed.pop(name, None)
                self._session.forget(state)

    async def stop(self) -> None:
        """Stop fetching, and close the connection.

        The loop can be cancelled at any await. An append contains none: a batch is appended as a
        whole or not at all.
        """
        self._task.cancel()
        await asyncio.wait([self._task])
        self._disconnect()

    # --- the loop --------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Fetch until cancelled.

        Errors of the connection, timeouts and errors of the whole request end here: the connection
        is closed and a new session is opened after a backoff. Errors of single partitions do not
        reach this loop; `_process_partition` handles them.

        Kafka's AbstractFetcherThread.doWork, as a task of the event loop instead of a thread.
        """
        while True:
            try:
                await self._wait_for_work()
                # replica.socket.timeout.ms: a leader that hangs keeps its connections open, so that
                # without a timeout the follower would wait for as long as it hangs.
                async with asyncio.timeout(self._context.settings.timeout_s):
                    await self._fetch_once()
            except (OSError, ApiError) as error:  # a TimeoutError is an OSError
                logger.info("fetch failed leader=%s: %s", self._find_leader(), error)
                await self._back_off()
            except Exception:
                logger.exception("fetch failed leader=%s", self._find_leader())
                await self._back_off()

    async def _wait_for_work(self) -> None:
        """Wait until at least one partition is in the session: added, or no longer delayed."""
        timeout_s = self._return_delayed()
        # No addition is missed: `add` cannot run between this check and the wait, which is the
        # first suspension point.
        while self._session.is_empty:
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._woken.wait()
            timeout_s = self._return_delayed()

    def _return_delayed(self) -> float | None:
        """Fetch again what was delayed long enough; returns the seconds until the next one."""
        if not self._delayed:
            return None
        now_s = asyncio.get_running_loop().time()
        for name, state in list(self._delayed.items()):
            if state.delayed_until_s <= now_s:
                del self._delayed[name]
                self._session.change(state)
        return min((s.delayed_until_s - now_s for s in self._delayed.values()), default=None)

    async def _fetch_once(self) -> None:
        """Send one request and process its response, over a new connection if needed."""
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await self._connect()
        await self._fetch(connection)

    async def _connect(self) -> BrokerConnection:
        """Connect to the leader. A fetch session does not survive its connection here."""
        self._session.restart()
        node = self._find_leader()
        if node is None:
            raise ConnectionError("the leader is not alive")
        self._connection = await self._context.connect(node)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _back_off(self) -> None:
        """Close the connection and wait: an unreachable leader must not be polled in a loop."""
        self._disconnect()
        self._session.restart()
        await asyncio.sleep(self._context.settings.backoff_s)

    def _delay(self, state: FollowerState) -> None:
        """Leave a partition out of the next requests for `replica.fetch.backoff.ms`.

        No effect if the partition was removed, or removed and added again, in the meantime.
        """
        name = state.partition.name
        if self._states.get(name) is state:
            self._session.forget(state)
            now_s = asyncio.get_running_loop().time()
            state.delayed_until_s = now_s + self._context.settings.backoff_s
            self._delayed[name] = state

    # --- fetching --------------------------------------------------------------------------------

    async def _fetch(self, connection: BrokerConnection) -> None:
        """Send a request with all changed positions, and process the response.

        An error of the session itself (the leader has evicted or restarted it) needs no backoff:
        the next request opens a new session with all partitions.
        """
        context = self._context
        version = connection.version_for(_ANY_FETCH)
        request = self._session.request(
            version, context.broker_id, context.broker_epoch.value, context.settings.limits
        )
        response = await connection.send(request, version)
        if response.error_code:
            code = ErrorCode.name_of(response.error_code)
            logger.info("fetch session ended leader=%s error=%s", self._find_leader(), code)
            self._session.restart()
            if response.error_code not in _SESSION_ERRORS:
                raise ApiError(ErrorCode(response.error_code))
            return
        await self._process_response(connection, response)
        # After processing: if the leader keeps no session, this drops the partitions that were
        # named, and `_session.find` could not attribute the data any more.
        self._session.answered(response.session_id)

    async def _process_response(
        self, connection: BrokerConnection, response: FetchResponse
    ) -> None:
        """Process every partition of a response; those out of range last, as they need requests.

        Partitions may be removed while these requests are awaited, and by `_process_partition`.
        """
        out_of_range = []
        unflushed: list[PartitionLog] = []
        for topic in response.responses:
            key = topic.topic or topic.topic_id
            for data in topic.partitions:
                state = self._session.find(key, data.partition_index)
                if state is None:  # removed since the request was sent
                    continue
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    out_of_range.append(state)
                else:
                    self._process_partition(state, data)
                    if state.partition.log.flush_is_due:
                        unflushed.append(state.partition.log)
        for state in out_of_range:
            await self._reset(connection, state)
        # The next request tells the leader that the records are here to stay.
        if unflushed:
            await self._context.flush(unflushed)

    def _process_partition(self, state: FollowerState, data: PartitionData) -> None:
        """Append or truncate, by the table of this module; never raises an error of the data."""
        name = state.partition.name
        if data.error_code:
            self._failed(state, ErrorCode(data.error_code))
            return
        try:
            # The leader has compared our position and last fetched epoch with its own leader
            # epochs. Where they differ it sends the epoch and its end offset instead of records.
            epoch, end_offset = data.diverging_epoch.epoch, data.diverging_epoch.end_offset
            if epoch >= 0:
                self._truncate(state, truncation_offset(state.partition.log, epoch, end_offset))
            else:
                self._append(state, data)
            self._send_position(state)
        except CorruptRecord as error:  # perhaps only in transit
            logger.error("corrupt records from the leader partition=%s: %s", name, error)
            self._delay(state)
        except ApiError as error:
            # For example KAFKA_STORAGE_ERROR: a log directory stays offline until the broker
            # restarts, and a restarted broker gets LeaderAndIsr for all its replicas.
            logger.error("cannot append, stopped fetching partition=%s: %s", name, error)
            self.remove([name])

    def _append(self, state: FollowerState, data: PartitionData) -> None:
        """Append the records, then take over the leader's watermarks, in this order.

        The high watermark is limited to the log end, so records must be appended first. They may be
        missing: a response can consist of a new watermark alone.
        """
        partition, records = state.partition, data.records
        if records:
            assert isinstance(records, memoryview)  # noqa: S101  # decoded from the wire
            partition.append_as_follower(records)
            self._context.throttle.record(partition.name, len(records))
        partition.update_watermarks_from_leader(data.high_watermark, data.log_start_offset)

    def _send_position(self, state: FollowerState) -> None:
        """Send the present position with the next request, if the leader does not know it."""
        partition, throttle = state.partition, self._context.throttle
        if not state.refresh():
            return
        # A follower in sync is never throttled: that would remove it from the ISR. Its lag is known
        # from the leader's high watermark, as in Kafka.
        is_lagging = state.fetch_offset < partition.leader_high_watermark
        if is_lagging and throttle.holds_back(partition.name):
            self._delay(state)
        else:
            self._session.change(state)

    def _failed(self, state: FollowerState, code: ErrorCode) -> None:
        """Delay or drop a partition after an error of the leader.

        Fenced means that the leader has a newer epoch. If this broker's own epoch has changed since
        the request, that is expected, and the next request has the new one. Otherwise only the
        controller can help.
        """
        name = state.partition.name
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            if state.leader_epoch == state.partition.state.leader_epoch:
                logger.info("fenced, waiting for LeaderAndIsr partition=%s", name)
                self.remove([name])
                return
        elif code not in _TRANSIENT:
            logger.error("cannot fetch partition=%s error=%s", name, code.name)
        self._delay(state)

    # --- truncating ------------------------------------------------------------------------------

    def _truncate(self, state: FollowerState, offset: int) -> None:
        """Truncate the log, and the future log of a move, to `offset`.

        Removing records below the high watermark loses committed ones. That is possible after an
        unclean election only, hence the warning.
        """
        partition, log = state.partition, state.partition.log
        if offset < log.log_end_offset:
            logger.info(
                "truncating partition=%s offset=%s log_end_offset=%s leader_epoch=%s",
                partition.name,
                offset,
                log.log_end_offset,
                state.leader_epoch,
            )
        if offset < log.high_watermark:
            logger.warning(
                "truncating below the high watermark partition=%s offset=%s high_watermark=%s",
                partition.name,
                offset,
                log.high_watermark,
            )
        future = self._context.future_log(partition.name)
        if offset >= log.log_end_offset:  # removes no record: nothing to pause or to checkpoint
            truncate(partition, future, offset)
            return
        with self._context.truncating(partition.name):
            truncate(partition, future, offset)

    async def _reset(self, connection: BrokerConnection, state: FollowerState) -> None:
        """The leader does not have the fetch offset: find a position that it has.

        Its log ends before ours (an unclean election): truncate to its end. Or its log starts after
        ours ends (this broker was away longer than the retention): start again at its start.
        """
        partition, name = state.partition, state.partition.name
        try:
            end = await self._list_offset(connection, state, LATEST_TIMESTAMP)
            start = await self._list_offset(connection, state, EARLIEST_TIMESTAMP)
            if self._states.get(name) is not state:  # removed while the offsets were requested
                return
            log = partition.log
            if end < log.log_end_offset:
                self._truncate(state, end)
            elif start > log.log_end_offset:
                with self._context.truncating(name):
                    truncate_fully_and_start_at(log, start)
            # If neither applies, the leader's log has grown or its start has moved since it
            # answered; the position stays, and the next fetch decides.
            logger.info("reset fetch offset partition=%s offset=%s", name, log.log_end_offset)
            self._send_position(state)
        except ApiError as error:
            self._failed(state, error.code)

    async def _list_offset(
        self, connection: BrokerConnection, state: FollowerState, timestamp: int
    ) -> int:
        """The start or end of the leader's log, fenced by the leader epoch; ApiError if refused."""
        name = state.partition.name
        # For a follower (replica_id is a broker) LATEST is the log end offset, not the high
        # watermark.
        asked = ListOffsetsPartition(
            partition_index=name.partition,
            current_leader_epoch=state.leader_epoch,
            timestamp=timestamp,
        )
        response = await connection.send(
            ListOffsetsRequest(
                replica_id=self._context.broker_id,
                topics=[ListOffsetsTopic(name=name.topic, partitions=[asked])],
            )
        )
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise ApiError(ErrorCode(answer.error_code), f"{name}: ListOffsets failed")
        return answer.offset


_ANY_FETCH: Final = FetchRequest()
_SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""Errors that a new session resolves."""
_TRANSIENT: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.OFFSET_NOT_AVAILABLE,
)
"""Errors of leaders while partitions are being created, reassigned or deleted."""
