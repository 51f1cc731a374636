"""Answers Fetch: record batches as they lie in the files, from partitions this broker leads.

The limits: a partition's `partition_max_bytes`, the request's `max_bytes`, the broker's
`fetch.max.bytes`. From version 3 on the first batch is always given whole, however large, so that a
consumer is never stuck behind it. When there are fewer than `min_bytes`, and no error, the answer
waits for the partitions to grow, `max_wait_ms` at most.

Old clients get old formats: magic 0 up to version 1, magic 1 up to version 3. That is the only case
in which records are decoded here. Versions below 10 cannot read zstd.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from broker.api.context import RequestContext
from broker.api.fetch_session import FetchPlan, Target, by_topic
from broker.api.leaders import current_leader
from broker.errors import ApiError, ErrorCode
from broker.log.offsets import FetchData, FetchIsolation
from broker.model import Uuid
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from broker.protocol.primitives import Records
from broker.records.batch import iterate_batches
from broker.records.convert import down_convert, needs_down_conversion
from broker.records.layout import CURRENT_MAGIC
from broker.replica.delayed import Ticket
from broker.replica.partition import Partition

_READ_COMMITTED: Final = 1
_NO_RECORDS: Final = b""
_MAGIC_BY_VERSION: Final = {0: 0, 1: 0, 2: 1, 3: 1}
_FIRST_VERSION_OF_WHOLE_BATCHES: Final = 3
_FIRST_VERSION_OF_CURRENT_LEADER: Final = 12
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)

Answers = list[tuple[Target, PartitionData]]


def handle(
    request: FetchRequest, context: RequestContext
) -> FetchResponse | Awaitable[FetchResponse]:
    """Read what is there; wait if it is too little."""
    loop = asyncio.get_running_loop()
    sessions = context.services.fetch_sessions
    try:
        plan = sessions.plan(request, context.api_version, loop.time())
    except ApiError as error:
        return FetchResponse(error_code=error.code)
    answers = _read_all(plan, request, context)
    if request.max_wait_ms <= 0 or _is_enough(answers, request.min_bytes):
        return _respond(plan, answers)
    return _wait(plan, request, context, loop.time() + request.max_wait_ms / 1000)


async def _wait(
    plan: FetchPlan, request: FetchRequest, context: RequestContext, deadline_s: float
) -> FetchResponse:
    """Read again whenever one of the partitions has moved, until it is enough or time is up."""
    loop = asyncio.get_running_loop()
    while True:
        with Ticket(partition.moves for partition in _partitions(plan, context)) as ticket:
            # Between the first look and the ticket a partition may have moved.
            answers = _read_all(plan, request, context)
            if _is_enough(answers, request.min_bytes):
                break
            if not await ticket.moved(deadline_s - loop.time()):
                answers = _read_all(plan, request, context)
                break
    return _respond(plan, answers)


def _partitions(plan: FetchPlan, context: RequestContext) -> list[Partition]:
    found = []
    for target in plan.targets:
        try:
            found.append(_find(target, context))
        except ApiError:  # the error is in the answer, which then is enough
            continue
    return found


def _is_enough(answers: Answers, min_bytes: int) -> bool:
    size = 0
    for _, answer in answers:
        if answer.error_code:
            return True
        size += len(answer.records or _NO_RECORDS)
    return size >= min_bytes or not answers


def _respond(plan: FetchPlan, answers: Answers) -> FetchResponse:
    if plan.session is not None:
        answers = _news(plan, answers)
    return FetchResponse(
        session_id=plan.session_id,
        responses=[
            FetchableTopicResponse(
                topic="" if isinstance(topic, Uuid) else topic,
                topic_id=topic if isinstance(topic, Uuid) else Uuid.ZERO,
                partitions=partitions,
            )
            for topic, partitions in by_topic(answers).items()
        ],
    )


def _news(plan: FetchPlan, answers: Answers) -> Answers:
    """What a session's client must be told; a full fetch is told everything, and remembered."""
    told = []
    for target, answer in answers:
        if target.has_news(answer) or not plan.is_incremental:
            told.append((target, answer))
        if plan.session is not None and answer.records:
            plan.session.move_to_end(target)
    return told


def _read_all(plan: FetchPlan, request: FetchRequest, context: RequestContext) -> Answers:
    left = min(request.max_bytes, context.services.config.fetch_max_bytes)
    answers: Answers = []
    is_first = context.api_version >= _FIRST_VERSION_OF_WHOLE_BATCHES
    for target in plan.targets:
        answer = _read_partition(target, request, context, left, min_one_message=is_first)
        size = len(answer.records or _NO_RECORDS)
        if size:
            is_first = False
            left = max(0, left - size)
        answers.append((target, answer))
    return answers


def _read_partition(
    target: Target,
    request: FetchRequest,
    context: RequestContext,
    max_bytes: int,
    *,
    min_one_message: bool,
) -> PartitionData:
    asked = target.asked
    is_committed = request.isolation_level == _READ_COMMITTED
    try:
        partition = _find(target, context)
        partition.check_replica(max(request.replica_id, request.replica_state.replica_id))
        found = partition.read(
            asked.fetch_offset,
            min(asked.partition_max_bytes, max_bytes),
            FetchIsolation.TXN_COMMITTED if is_committed else FetchIsolation.HIGH_WATERMARK,
            min_one_message=min_one_message,
            current_leader_epoch=asked.current_leader_epoch,
        )
        records = _records(found, context.api_version)
    except ApiError as error:
        return _failed(target, error, context)
    log = partition.log
    return PartitionData(
        partition_index=asked.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=_aborted(found),
        records=records,
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


def _records(found: FetchData, version: int) -> Records:
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
    return b"".join(down_convert(batches, magic, found.fetch_offset.offset))


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
