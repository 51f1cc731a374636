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
from functools import partial
from typing import Final, NamedTuple

from broker.api.context import RequestContext
from broker.api.fetch_session import NO_SESSION, FetchPlan, FetchSession, Target
from broker.api.leaders import current_leader, leader_endpoints
from broker.api.read_replicas import preferred_read_replica
from broker.errors import ApiError, ErrorCode
from broker.log.offsets import FetchData, FetchIsolation
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

Answers = dict[Target, PartitionData]


class _Reader(NamedTuple):
    """Who asks, and under which conditions; the same for all partitions of a request."""

    session: FetchSession
    isolation: FetchIsolation
    max_bytes: int
    rack_id: str
    only_leader: bool
    """Consumers that could be sent to another replica may come to a follower (KIP-392)."""
    context: RequestContext


def handle(request: FetchRequest, context: RequestContext) -> FetchResponse | Later[FetchResponse]:
    """Read what is there; wait if it is too little."""
    loop = asyncio.get_running_loop()
    sessions = context.services.fetch_sessions
    try:
        plan = sessions.plan(request, context.api_version, loop.time())
    except ApiError as error:
        return FetchResponse(error_code=error.code)
    session = plan.session
    session.last_fetch_ms = context.services.clock.now_ms()
    reader = _reader(request, session, context)
    answers: Answers = {}
    is_enough = _read_pending(reader, request.min_bytes, answers)
    if is_enough or request.max_wait_ms <= 0 or not session.targets:
        return _respond(plan, answers, context)
    return _wait(_Waiting(plan, reader, request, answers, loop.time() + request.max_wait_ms / 1000))


def _reader(request: FetchRequest, session: FetchSession, context: RequestContext) -> _Reader:
    if session.is_follower:
        isolation = FetchIsolation.LOG_END
    elif request.isolation_level == _READ_COMMITTED:
        isolation = FetchIsolation.TXN_COMMITTED
    else:
        isolation = FetchIsolation.HIGH_WATERMARK
    max_bytes = min(request.max_bytes, context.services.config.fetch_max_bytes)
    has_choice = context.api_version >= _FIRST_VERSION_OF_PREFERRED_REPLICA
    only_leader = session.is_follower or not has_choice
    return _Reader(session, isolation, max_bytes, request.rack_id, only_leader, context)


class _Waiting(NamedTuple):
    """A request for which there was too little, and what was read for it."""

    plan: FetchPlan
    reader: _Reader
    request: FetchRequest
    answers: Answers
    deadline_s: float


def _wait(waiting: _Waiting) -> Later[FetchResponse]:
    """Look again when one of the partitions has moved, or time is up."""
    session = waiting.plan.session
    done = session.moved(waiting.deadline_s)
    if session.session_id == NO_SESSION:
        session.listen()
        done.add_done_callback(partial(_maybe_close, session))
    return Later(done, partial(_look_again, waiting))


def _maybe_close(session: FetchSession, done: Waiter) -> None:
    if done.cancelled():  # the client has gone
        session.close()


def _look_again(waiting: _Waiting) -> FetchResponse | Later[FetchResponse]:
    plan, reader, request, answers, deadline_s = waiting
    session, is_woken = plan.session, plan.session.is_woken
    if not is_woken:
        session.last_fetch_ms = reader.context.services.clock.now_ms()
    is_enough = _read_pending(reader, request.min_bytes, answers)
    if is_enough or not is_woken or asyncio.get_running_loop().time() >= deadline_s:
        return _respond(plan, answers, reader.context)
    return _wait(waiting)


def _respond(plan: FetchPlan, answers: Answers, context: RequestContext) -> FetchResponse:
    session = plan.session
    is_alone = session.session_id == NO_SESSION
    topics: dict[str | Uuid, list[PartitionData]] = {}
    for target, answer in answers.items():
        if is_alone or target.has_news(answer) or not plan.is_incremental:
            topics.setdefault(target.topic, []).append(answer)
    if is_alone:
        session.close()
    return FetchResponse(
        session_id=session.session_id,
        responses=[
            FetchableTopicResponse(
                topic="" if isinstance(topic, Uuid) else topic,
                topic_id=topic if isinstance(topic, Uuid) else Uuid.ZERO,
                partitions=partitions,
            )
            for topic, partitions in topics.items()
        ],
        node_endpoints=_endpoints(answers, context),
    )


def _endpoints(answers: Answers, context: RequestContext) -> list[NodeEndpoint]:
    """Where the leaders are that answers name, so that the client need not ask (KIP-951)."""
    if context.api_version < _FIRST_VERSION_OF_ENDPOINTS:
        return []
    leaders = {a.current_leader.leader_id for a in answers.values() if a.error_code}
    return [
        NodeEndpoint(node_id=broker.broker_id, host=broker.host, port=broker.port, rack=broker.rack)
        for broker in leader_endpoints(context, leaders)
    ]


def _read_pending(reader: _Reader, min_bytes: int, answers: Answers) -> bool:
    """Read what has moved; whether that is enough to answer.

    What was read before and has not moved since stays as it was. A partition that has nothing more
    for the client is pending no longer; one that has comes last next time.
    """
    session = reader.session
    session.is_woken = False
    left, size, is_urgent = reader.max_bytes, 0, False
    min_one_message = reader.context.api_version >= _FIRST_VERSION_OF_WHOLE_BATCHES
    for target in list(session.pending):
        answer, has_more = _read_partition(target, reader, left, min_one_message=min_one_message)
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
    return is_urgent or size >= min_bytes


def _read_partition(
    target: Target, reader: _Reader, max_bytes: int, *, min_one_message: bool
) -> tuple[PartitionData, bool]:
    """The answer for one partition, and whether there is or may be more."""
    asked, context = target.asked, reader.context
    try:
        partition = _find(target, context)
        if target.partition is not partition:
            target.turn_to(partition)
        _check_role(target, partition, reader)
        if asked.last_fetched_epoch >= 0:
            diverging = partition.divergence(asked.last_fetched_epoch, asked.fetch_offset)
            if diverging is not None:
                return _diverging(asked.partition, partition, diverging), True
        if reader.rack_id and not reader.only_leader:
            preferred = preferred_read_replica(
                partition, asked.fetch_offset, reader.rack_id, context
            )
            if preferred is not None:
                return _elsewhere(asked.partition, partition, preferred), True
        found = partition.log.read(
            asked.fetch_offset,
            min(asked.partition_max_bytes, max_bytes),
            reader.isolation,
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
            replica, asked.fetch_offset, asked.log_start_offset, reader.session.last_fetch_ms
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


def _check_role(target: Target, partition: Partition, reader: _Reader) -> None:
    """Raise unless this broker may answer, in the epoch that the client thinks it is."""
    epoch = target.asked.current_leader_epoch
    if not reader.only_leader:
        partition.check_epoch(epoch)
        return
    partition.check_leader(epoch)
    if reader.session.is_follower:
        target.replica = partition.follower(reader.session.replica_id, epoch)


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
