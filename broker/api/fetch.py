"""Answers Fetch: record batches as they lie in the files, to consumers and to followers.

A follower says with its fetch offset that it has everything before it: that is how the high
watermark moves. One whose log has parted from ours is told where instead of getting records.

The limits: a partition's `partition_max_bytes`, the request's `max_bytes`, the broker's
`fetch.max.bytes`. From version 3 on the first batch is always given whole, however large, so that a
consumer is never stuck behind it. When there are fewer than `min_bytes`, and no error, the answer
waits for the partitions to grow, `max_wait_ms` at most.

Old clients get old formats: magic 0 up to version 1, magic 1 up to version 3. That is the only case
in which records are decoded here. Versions below 10 cannot read zstd.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from broker.api.context import RequestContext
from broker.api.fetch_session import NO_SESSION, FetchPlan, Target
from broker.api.leaders import current_leader, leader_endpoints
from broker.api.read_replicas import preferred_read_replica
from broker.errors import ApiError, ErrorCode
from broker.log.offsets import HIGH_WATERMARK, LOG_END, TXN_COMMITTED, FetchData
from broker.model import Uuid
from broker.net.later import Later
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from broker.protocol.primitives import Records
from broker.records.batch import iterate_batches
from broker.records.convert import down_convert, needs_down_conversion
from broker.records.layout import CURRENT_MAGIC
from broker.replica.in_sync import RemoteReplica
from broker.replica.partition import Partition
from broker.replica.purgatory import Waiter

_READ_COMMITTED: Final = 1
_NO_RECORDS: Final = b""
_MAGIC_BY_VERSION: Final = {0: 0, 1: 0, 2: 1, 3: 1}
_FIRST_VERSION_OF_WHOLE_BATCHES: Final = 3
_FIRST_VERSION_OF_PREFERRED_REPLICA: Final = 11
_FIRST_VERSION_OF_CURRENT_LEADER: Final = 12
_FIRST_VERSION_OF_ENDPOINTS: Final = 16
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse | Later[FetchResponse]:
    """Read what is there; wait if it is too little."""
    services, now_s = context.services, asyncio.get_running_loop().time()
    try:
        plan = services.fetch_sessions.plan(request, context.api_version, now_s)
    except ApiError as error:
        return FetchResponse(error_code=error.code)
    session = plan.session
    session.last_fetch_ms = services.clock.now_ms()
    fetch = _Fetch(request, plan, context, now_s)
    if fetch.read_pending() or request.max_wait_ms <= 0 or not session.targets:
        return fetch.respond()
    return fetch.wait()


class _Fetch:
    """One request on its way, from reading to answer: who asks, how far it may see, what it got.

    Field `only_leader`: consumers that could be sent to another replica may come to a follower
    (KIP-392), all others may not.
    Field `answers`: what was read so far. Invariant: as it is now, but for pending partitions.
    """

    __slots__ = (
        "answers",
        "context",
        "deadline_s",
        "is_incremental",
        "isolation",
        "max_bytes",
        "min_bytes",
        "only_leader",
        "rack_id",
        "session",
    )

    def __init__(
        self, request: FetchRequest, plan: FetchPlan, context: RequestContext, now_s: float
    ) -> None:
        session = plan.session
        self.session = session
        self.is_incremental = plan.is_incremental
        self.context = context
        self.min_bytes = request.min_bytes
        self.max_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
        self.rack_id = request.rack_id
        self.deadline_s = now_s + request.max_wait_ms / 1000
        self.answers: dict[Target, PartitionData] = {}
        self.only_leader = True
        if session.is_follower:
            self.isolation = LOG_END
        else:
            is_committed_only = request.isolation_level == _READ_COMMITTED
            self.isolation = TXN_COMMITTED if is_committed_only else HIGH_WATERMARK
            self.only_leader = context.api_version < _FIRST_VERSION_OF_PREFERRED_REPLICA

    def wait(self) -> Later[FetchResponse]:
        """Look again when one of the partitions has moved, or time is up."""
        session = self.session
        done = session.moved(self.deadline_s)
        if session.session_id == NO_SESSION:
            session.listen()
            done.add_done_callback(self._maybe_close)
        return Later(done, self.look_again)

    def _maybe_close(self, done: Waiter) -> None:
        if done.cancelled():  # the client has gone
            self.session.close()

    def look_again(self) -> FetchResponse | Later[FetchResponse]:
        """Answer, unless what has moved is still too little and there is time left."""
        session, is_woken = self.session, self.session.is_woken
        if not is_woken:
            session.last_fetch_ms = self.context.services.clock.now_ms()
        is_enough = self.read_pending()
        if is_enough or not is_woken or asyncio.get_running_loop().time() >= self.deadline_s:
            return self.respond()
        return self.wait()

    def read_pending(self) -> bool:
        """Read what has moved; whether that is enough to answer.

        What was read before and has not moved since stays as it was. A partition that has nothing
        more for the client is pending no longer; one that has comes last next time.
        """
        session, answers = self.session, self.answers
        session.is_woken = False
        left, size, is_urgent = self.max_bytes, 0, False
        min_one_message = self.context.api_version >= _FIRST_VERSION_OF_WHOLE_BATCHES
        for target in list(session.pending):
            answer, has_more = _read_partition(target, self, left, min_one_message=min_one_message)
            answers[target] = answer
            session.pending.pop(target, None)
            if has_more:
                session.pending[target] = None
            count = len(answer.records or _NO_RECORDS)
            if count:
                min_one_message = False
                size += count
                left = max(0, left - count)
            elif (
                answer.error_code
                or answer.diverging_epoch.epoch >= 0
                or answer.preferred_read_replica >= 0
            ):
                is_urgent = True
        return is_urgent or size >= self.min_bytes

    def respond(self) -> FetchResponse:
        """What was read, as far as the client does not know it."""
        session, answers = self.session, self.answers
        is_alone = session.session_id == NO_SESSION
        topics: dict[str | Uuid, list[PartitionData]] = {}
        for target, answer in answers.items():
            if is_alone or target.has_news(answer) or not self.is_incremental:
                topics.setdefault(target.topic, []).append(answer)
        if is_alone:
            session.close()
        return FetchResponse(
            session_id=session.session_id,
            responses=[
                FetchableTopicResponse(topic_id=topic, partitions=partitions)
                if isinstance(topic, Uuid)
                else FetchableTopicResponse(topic=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
            node_endpoints=_endpoints(answers.values(), self.context),
        )


def _endpoints(answers: Iterable[PartitionData], context: RequestContext) -> list[NodeEndpoint]:
    """Where the leaders are that answers name, so that the client need not ask (KIP-951)."""
    if context.api_version < _FIRST_VERSION_OF_ENDPOINTS:
        return []
    leaders = {answer.current_leader.leader_id for answer in answers if answer.error_code}
    if not leaders:
        return []
    return [
        NodeEndpoint(node_id=broker.broker_id, host=broker.host, port=broker.port, rack=broker.rack)
        for broker in leader_endpoints(context, leaders)
    ]


def _read_partition(
    target: Target, fetch: _Fetch, max_bytes: int, *, min_one_message: bool
) -> tuple[PartitionData, bool]:
    """The answer for one partition, and whether there is or may be more."""
    asked, context = target.asked, fetch.context
    try:
        partition = _find(target, context)
        if target.partition is not partition:
            target.turn_to(partition)
        _check_role(target, partition, fetch)
        if asked.last_fetched_epoch >= 0:
            diverging = partition.divergence(asked.last_fetched_epoch, asked.fetch_offset)
            if diverging is not None:
                return _diverging(asked.partition, partition, diverging), True
        if fetch.rack_id and not fetch.only_leader:
            preferred = preferred_read_replica(
                partition, asked.fetch_offset, fetch.rack_id, context
            )
            if preferred is not None:
                return _elsewhere(asked.partition, partition, preferred), True
        found = partition.log.read(
            asked.fetch_offset,
            min(asked.partition_max_bytes, max_bytes),
            fetch.isolation,
            min_one_message=min_one_message,
        )
        records = _records(found, asked.fetch_offset, context.api_version)
    except ApiError as error:
        return _failed(target, error, context), True
    has_more = found.records is not None
    replica = target.replica
    if replica is not None:
        records = _throttled(replica, partition, records, context)
        partition.follower_fetched(
            replica, asked.fetch_offset, asked.log_start_offset, fetch.session.last_fetch_ms
        )
        # One that is not in sync may be taken in at any fetch, even where nothing moves.
        has_more = has_more or replica.broker_id not in partition.state.isr
    log = partition.log
    answer = PartitionData(
        partition_index=asked.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=_aborted(found),
        records=records,
    )
    return answer, has_more


def _check_role(target: Target, partition: Partition, fetch: _Fetch) -> None:
    """Raise unless this broker may answer, in the epoch that the client thinks it is."""
    epoch = target.asked.current_leader_epoch
    if not fetch.only_leader:
        partition.check_epoch(epoch)
        return
    partition.check_leader(epoch)
    if fetch.session.is_follower:
        target.replica = partition.follower(fetch.session.replica_id, epoch)


def _throttled(
    replica: RemoteReplica, partition: Partition, records: Records, context: RequestContext
) -> Records:
    """Nothing for a follower that lags and is over its rate; else count what it gets."""
    throttle = context.services.replicas.leader_throttle
    if replica.broker_id not in partition.state.isr and throttle.holds_back(partition.name):
        return _NO_RECORDS
    throttle.record(partition.name, len(records))
    return records


def _diverging(index: int, partition: Partition, found: tuple[int, int]) -> PartitionData:
    epoch, end_offset = found
    return PartitionData(
        partition_index=index,
        high_watermark=partition.log.high_watermark,
        last_stable_offset=partition.log.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset),
        aborted_transactions=None,
        records=_NO_RECORDS,
    )


def _elsewhere(index: int, partition: Partition, preferred: int) -> PartitionData:
    return PartitionData(
        partition_index=index,
        high_watermark=partition.log.high_watermark,
        last_stable_offset=partition.log.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=preferred,
        records=_NO_RECORDS,
    )


def _find(target: Target, context: RequestContext) -> Partition:
    topic = target.topic
    if isinstance(topic, Uuid):
        name = context.services.metadata.names.get(topic)
        if name is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic}")
        topic = name
    return context.services.replicas.find(topic, target.asked.partition)


def _aborted(found: FetchData) -> list[AbortedTransaction] | None:
    if found.aborted_transactions is None:
        return None
    return [
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in found.aborted_transactions
    ]


def _records(found: FetchData, fetch_offset: int, version: int) -> Records:
    """The bytes, converted for a client that is too old for them."""
    if found.records is None:
        return _NO_RECORDS
    if found.first_entry_incomplete and version >= _FIRST_VERSION_OF_WHOLE_BATCHES:
        return _NO_RECORDS  # the limit was used up before; it comes first next time
    magic = _MAGIC_BY_VERSION.get(version, CURRENT_MAGIC)
    if magic == CURRENT_MAGIC:
        return found.records
    data = found.records.read()
    batches = list(iterate_batches(data))
    if not needs_down_conversion(batches, magic):
        return data
    return b"".join(down_convert(batches, magic, fetch_offset))


def _failed(target: Target, error: ApiError, context: RequestContext) -> PartitionData:
    leader = LeaderIdAndEpoch()
    if error.code in _MOVED and context.api_version >= _FIRST_VERSION_OF_CURRENT_LEADER:
        name = target.topic
        if isinstance(name, Uuid):
            name = context.services.metadata.names.get(name, "")
        leader_id, leader_epoch = current_leader(context, name, target.asked.partition)
        leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    return PartitionData(
        partition_index=target.asked.partition,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=[] if error.code in _UNKNOWN else None,  # as Kafka does
        current_leader=leader,
        records=_NO_RECORDS,
    )


def error_response(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """The error for the whole, and on every partition named for versions without that place."""
    return FetchResponse(
        error_code=code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=asked.partition,
                        error_code=code,
                        high_watermark=-1,
                        aborted_transactions=None,
                        records=_NO_RECORDS,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
