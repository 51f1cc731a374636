"""Handle Produce: append batches to partitions that this broker leads.

All partitions are appended first; with acks=all there is then one wait for all of them. A partition
with one replica is replicated as soon as it is written, so on a single broker nothing waits, except
with `flush.messages`: then every producer but those with acks=0 waits for a flush.

Checks per partition, in this order: it exists here, the version allows these bytes (from v3 on
exactly one batch of magic 2, zstd from v7 on), clients may write to the topic, this broker leads
it, the log accepts the batch. With acks=0 there is no response, so an error closes the connection:
that makes the producer refresh its metadata.

A batch that may take long to validate or to recompress is left out at first; when all others are
appended, threads validate it, and then it is appended too.

Versions:
    v1 throttle time
    v2 message format 1, log append time (KIP-32)
    v3 message format 2, transactional id (KIP-98)
    v4 KAFKA_STORAGE_ERROR (KIP-112)
    v5 log start offset (KIP-107)
    v6 clients wait out a throttle time themselves, after the response (KIP-219)
    v7 zstd (KIP-110)
    v8 errors per record (KIP-467)
    v9 flexible
    v10 the new leader with NOT_LEADER_OR_FOLLOWER (KIP-951)
    v11 TRANSACTION_ABORTABLE (KIP-890)

Deliberately missing: nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from struct import Struct
from typing import Final, NamedTuple

from broker.api.authorization import is_authorized, unauthorized
from broker.api.context import RequestContext
from broker.api.leaders import current_leader, leader_endpoints
from broker.api.transactional_append import (
    NOT_VERIFIED,
    Verified,
    is_transactional,
    verify_append,
    verify_elsewhere,
)
from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.log.append import AppendOrigin, LogAppendInfo
from broker.log.producer_state import VerificationGuard
from broker.log.validator import HeavyBatch, InvalidRecords
from broker.net.connection import CloseConnection
from broker.net.deferred import DeferredResponse
from broker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MIN_MESSAGE_SIZE_V0,
    TRANSACTIONAL_MASK,
    Codec,
)
from broker.replica.delayed_operations import DelayedProduce, RequiredOffset
from broker.replica.partition import Partition
from broker.security.acls import AclOperation, ResourceType
from broker.security.audit import logs_allowed
from broker.security.authorizer import AclAuthorizer
from broker.topic_names import INTERNAL_TOPICS

logger = logging.getLogger(__name__)

_VALID_ACKS: Final = (-1, 0, 1)
_ALL: Final = -1
_NO_ERROR: Final = ErrorCode.NONE  # a lookup in the enum takes as long as several calls
_FIRST_VERSION_OF_MAGIC_2: Final = 3
_FIRST_VERSION_OF_ZSTD: Final = 7
_FIRST_VERSION_OF_CURRENT_LEADER: Final = 10
_WRITE: Final = AclOperation.WRITE
_FLAGS: Final = ATTRIBUTES_POSITION + 1
"""The byte of a batch that says, among other things, whether it is transactional."""
_LENGTH_AND_MAGIC: Final = Struct(">8xi4xB")
_EXPECTED_FAILURES: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors of an append that Kafka expects: it leaves the log start offset out of the response, and
does not count the request as failed."""
_validators: Final = ThreadPoolExecutor(2, "batch-validator")
"""Threads that validate heavy batches. Each may need several times the largest decompressed size
(256 MiB), so they are few."""
_ADMIN_CLIENT_ID: Final = "__admin_client"
"""Client id with which administrators may write to internal topics, as in Kafka."""


def handle(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Append every batch; respond when as many replicas have them as `acks` requires."""
    authorizer = context.services.authorizer
    if authorizer is None or _is_plainly_allowed(request, context, authorizer):
        return _handle_allowed(request, context)
    return _handle_authorized(request, context)


def _is_plainly_allowed(
    request: ProduceRequest, context: RequestContext, authorizer: AclAuthorizer
) -> bool:
    """Whether a cached decision allows the request, and no batch is transactional or logged.

    Nearly all requests are like that; `_handle_authorized` takes twice as long.
    """
    peer = context.peer
    allowed = authorizer.allowed_topics.get((peer.principal, peer.host, _WRITE))
    if allowed is None or logs_allowed():
        return False
    for topic in request.topic_data:
        if topic.name not in allowed:
            return False
        for data in topic.partition_data:
            records = data.records
            if type(records) is not memoryview or len(records) <= _FLAGS:
                return False
            if records[_FLAGS] & TRANSACTIONAL_MASK:
                return False
    return True


def _handle_authorized(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Append only to topics that the client may write to."""
    if not _may_write_transactionally(request, context):
        if request.acks == 0:
            raise CloseConnection("produce with acks=0 failed: transactional id is not authorized")
        return error_response(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    denied = unauthorized(context, AclOperation.WRITE, [topic.name for topic in request.topic_data])
    if not denied:
        return _handle_allowed(request, context)
    return _handle_rest(request, denied, context)


def _may_write_transactionally(request: ProduceRequest, context: RequestContext) -> bool:
    """False if a batch is transactional and the client may not use the transactional id."""
    if not _has_transactional_records(request):
        return True
    name = request.transactional_id
    return name is not None and is_authorized(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name
    )


def _has_transactional_records(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview) and is_transactional(data.records):
                return True
    return False


async def _handle_rest(
    request: ProduceRequest, denied: Collection[str], context: RequestContext
) -> ProduceResponse | None:
    """Append to the topics that are not denied."""
    refused, allowed = (
        ProduceRequest(
            transactional_id=request.transactional_id,
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            topic_data=[t for t in request.topic_data if (t.name in denied) is is_refused],
        )
        for is_refused in (True, False)
    )
    failed = error_response(refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    response = _handle_allowed(allowed, context)
    if not (response is None or isinstance(response, ProduceResponse)):
        response = await response
    if response is None:
        _close_on_error(failed.responses)
        return None
    return ProduceResponse(
        responses=response.responses + failed.responses, node_endpoints=response.node_endpoints
    )


def _handle_allowed(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    if request.acks not in _VALID_ACKS:
        return error_response(request, ErrorCode.INVALID_REQUIRED_ACKS)
    if request.transactional_id is not None and (asking := verify_elsewhere(request, context)):
        return _when_verified(asking, request, context)
    return _append_all(request, context, NOT_VERIFIED)


async def _when_verified(
    asking: Awaitable[Verified], request: ProduceRequest, context: RequestContext
) -> ProduceResponse | None:
    response = _append_all(request, context, await asking)
    return response if response is None or isinstance(response, ProduceResponse) else await response


def _append_all(
    request: ProduceRequest, context: RequestContext, verified: Verified
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    waiting: _Waiting = {}
    topics = [
        TopicProduceResponse(
            name=topic.name,
            partition_responses=[
                _produce_partition(topic.name, data, request, context, waiting, verified)
                for data in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    if waiting:
        return _when_appended(topics, waiting, request, context)
    if request.acks == 0:
        _close_on_error(topics)
        return None
    return ProduceResponse(responses=topics, node_endpoints=_endpoints(topics, context))


def _produce_partition(
    topic: str,
    data: PartitionProduceData,
    request: ProduceRequest,
    context: RequestContext,
    waiting: "_Waiting",
    verified: Verified,
) -> PartitionProduceResponse:
    """Append to one partition; add it to `waiting` if acks=all and the ISR has not caught up.

    A batch that must be validated in a thread is added to `waiting` as well.
    """
    replicas = context.services.replicas
    try:
        partition = replicas.find(topic, data.index)
        records = _check_records(data, context.api_version)
        _check_topic(topic, context)
    except ApiError as error:
        leader = _current_leader(error.code, topic, data.index, context)
        return _failed(data.index, error, leader)
    verification = None
    if is_transactional(records):
        try:
            verification = verify_append(
                partition, records, request.transactional_id, context, verified
            )
        except ApiError as error:
            is_denied = error.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            message = None if is_denied else error.message
            return _failed(data.index, error, LeaderIdAndEpoch(), message)
    try:
        info = partition.append_as_leader(records, request.acks, verification=verification)
    except ApiError as error:
        leader = _current_leader(error.code, topic, data.index, context)
        return _refused(data.index, error, leader, partition, len(records))
    except HeavyBatch:
        answer = PartitionProduceResponse(index=data.index)
        # Not by its number: a partition may be named twice.
        waiting[topic, -1 - len(waiting)] = _Heavy(topic, partition, records, verification, answer)
        return answer
    if (
        context.api_version < _FIRST_VERSION_OF_MAGIC_2
        and len(records) > MAGIC_POSITION  # Kafka accepts records that are cut short, or none
        and records[MAGIC_POSITION] < CURRENT_MAGIC
    ):
        num_records = info.last_offset - info.first_offset + 1
        partition.stats.produce_message_conversions += num_records
    acks = request.acks
    if (acks == _ALL or (partition.log.flush_is_due and acks)) and (
        partition.acks_reached(info.last_offset + 1, acks) is not _NO_ERROR
    ):
        waiting[topic, data.index] = RequiredOffset(partition, info.last_offset + 1, acks)
    return _done(data.index, info)


class _Heavy(NamedTuple):
    """A batch that threads must validate before it is appended."""

    topic: str
    partition: Partition
    records: memoryview
    verification: VerificationGuard | None
    answer: PartitionProduceResponse
    """In the response until the batch is appended."""


_Waiting = dict[tuple[str, int], RequiredOffset | _Heavy]
"""What a response waits for: replicas, by partition, and heavy batches."""


def _when_appended(
    topics: list[TopicProduceResponse],
    waiting: _Waiting,
    request: ProduceRequest,
    context: RequestContext,
) -> Awaitable[ProduceResponse | None]:
    """Wait for heavy batches, if there are any, then for the ISR."""
    required = {key: one for key, one in waiting.items() if not isinstance(one, _Heavy)}
    if len(required) < len(waiting):
        heavy = [one for one in waiting.values() if isinstance(one, _Heavy)]
        return _append_heavy(heavy, topics, required, request, context)
    return _when_acknowledged(topics, required, request.timeout_ms / 1000, context)


async def _append_heavy(
    heavy: list[_Heavy],
    topics: list[TopicProduceResponse],
    waiting: dict[tuple[str, int], RequiredOffset],
    request: ProduceRequest,
    context: RequestContext,
) -> ProduceResponse | None:
    """Validate in threads and append, one batch after the other; then respond as usual."""
    answers = {
        id(one.answer): await _append_validated(one, waiting, request, context) for one in heavy
    }
    for topic in topics:
        responses = topic.partition_responses
        responses[:] = [answers.get(id(answer), answer) for answer in responses]
    if request.acks == 0:
        _close_on_error(topics)
        return None
    if waiting:
        return await _when_acknowledged(topics, waiting, request.timeout_ms / 1000, context)
    return ProduceResponse(responses=topics, node_endpoints=_endpoints(topics, context))


async def _append_validated(
    heavy: _Heavy,
    waiting: dict[tuple[str, int], RequiredOffset],
    request: ProduceRequest,
    context: RequestContext,
) -> PartitionProduceResponse:
    topic, partition, records, verification, answer = heavy
    action_queue = context.services.purgatory.action_queue
    try:
        loop = asyncio.get_running_loop()
        validated = await loop.run_in_executor(_validators, partition.log.validated, records)
        action_queue.hold()
        try:
            info = partition.append_as_leader(
                validated, request.acks, AppendOrigin.VALIDATED_CLIENT, verification
            )
        finally:
            action_queue.try_complete_actions()
    except ApiError as error:
        leader = _current_leader(error.code, topic, answer.index, context)
        return _refused(answer.index, error, leader, partition, len(records))
    acks = request.acks
    if (acks == _ALL or (partition.log.flush_is_due and acks)) and (
        partition.acks_reached(info.last_offset + 1, acks) is not _NO_ERROR
    ):
        waiting[topic, answer.index] = RequiredOffset(partition, info.last_offset + 1, acks)
    return _done(answer.index, info)


def _check_topic(topic: str, context: RequestContext) -> None:
    """Refuse internal topics, except to the administrators' client id."""
    if topic in INTERNAL_TOPICS and context.client_id != _ADMIN_CLIENT_ID:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}"
        )


def _check_records(data: PartitionProduceData, version: int) -> memoryview:
    """The partition's bytes, if this version of the request allows them."""
    records = data.records
    if isinstance(records, memoryview) and len(records) >= HEADER_SIZE:
        length, magic = _LENGTH_AND_MAGIC.unpack_from(records)
        is_one = length + LOG_OVERHEAD == len(records) and magic == CURRENT_MAGIC
        if is_one and version >= _FIRST_VERSION_OF_ZSTD:
            return records  # nearly all are; the checks below cost three times as much
    if not isinstance(records, memoryview):
        raise _not_allowed(version, "must have at least one record batch")
    if version < _FIRST_VERSION_OF_MAGIC_2:
        return records
    size = _batch_size(records, 0)
    if size is None:
        raise _not_allowed(version, "must have at least one record batch")
    if records[MAGIC_POSITION] != CURRENT_MAGIC:
        magic = f"with magic version {CURRENT_MAGIC}"
        raise _not_allowed(version, f"are only allowed to contain record batches {magic}")
    if version < _FIRST_VERSION_OF_ZSTD and (
        records[ATTRIBUTES_POSITION + 1] & CODEC_MASK == Codec.ZSTD
    ):
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if size != len(records) and _batch_size(records, size) is not None:
        one = "exactly one record batch per partition"
        raise _not_allowed(version, f"are only allowed to contain {one}")
    return records


def _not_allowed(version: int, problem: str) -> ApiError:
    message = f"Produce requests with version {version} {problem}"
    return ApiError(ErrorCode.INVALID_RECORD, message)


def _batch_size(records: memoryview, position: int) -> int | None:
    """The size of the batch at this position; None if it is incomplete.

    CorruptRecord if it cannot be a batch.
    """
    left = len(records) - position
    if left < LOG_OVERHEAD:
        return None
    length = int.from_bytes(records[position + 8 : position + LOG_OVERHEAD], signed=True)
    if length < MIN_MESSAGE_SIZE_V0:
        raise CorruptRecord(f"position {position}: a batch of {length} bytes is too short")
    if left <= MAGIC_POSITION:
        return None
    if records[position + MAGIC_POSITION] > CURRENT_MAGIC:
        raise CorruptRecord(f"position {position}: found magic {records[position + 16]}")
    size = length + LOG_OVERHEAD
    return size if size <= left else None


def _done(index: int, info: LogAppendInfo) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time,
        log_start_offset=info.log_start_offset,
    )


def _refused(
    index: int, error: ApiError, leader: LeaderIdAndEpoch, partition: Partition, num_bytes: int
) -> PartitionProduceResponse:
    """The response for a batch that the log refused, with the fields that Kafka sets.

    The client gets a message only for errors of single records (KIP-467), so the reason is logged.
    """
    logger.info("append refused partition=%s error=%s: %s", partition.name, error.code.name, error)
    partition.stats.produce_requests += 1
    if error.code == ErrorCode.MESSAGE_TOO_LARGE:
        partition.stats.bytes_rejected += num_bytes
    if error.code not in _EXPECTED_FAILURES:
        partition.stats.failed_produce_requests += 1
    start_offset = -1 if error.code in _EXPECTED_FAILURES else partition.log.log_start_offset
    if not isinstance(error, InvalidRecords):
        return _failed(index, error, leader, log_start_offset=start_offset)
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=start_offset,
        error_message=error.message,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in error.record_errors
        ],
    )


def _failed(
    index: int,
    error: ApiError,
    leader: LeaderIdAndEpoch,
    error_message: str | None = None,
    log_start_offset: int = -1,
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=log_start_offset,
        error_message=error_message,
        current_leader=leader,
    )


def _current_leader(
    code: ErrorCode, topic: str, index: int, context: RequestContext
) -> LeaderIdAndEpoch:
    """The current leader, if the error is that this broker is not it (KIP-951)."""
    has_field = context.api_version >= _FIRST_VERSION_OF_CURRENT_LEADER
    if not has_field or code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return LeaderIdAndEpoch()
    leader_id, leader_epoch = current_leader(context, topic, index)
    return LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)


def _endpoints(topics: list[TopicProduceResponse], context: RequestContext) -> list[NodeEndpoint]:
    """The endpoints of the leaders named in the response; versions below 10 name none."""
    if context.api_version < _FIRST_VERSION_OF_CURRENT_LEADER:
        return []
    leaders = {
        answer.current_leader.leader_id
        for topic in topics
        for answer in topic.partition_responses
        if answer.error_code
    }
    if not leaders:
        return []
    return [
        NodeEndpoint(node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack)
        for node in leader_endpoints(context, leaders)
    ]


def _close_on_error(topics: list[TopicProduceResponse]) -> None:
    for topic in topics:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(
                    f"produce with acks=0 failed topic={topic.name} partition={partition.index} "
                    f"error={ErrorCode.name_of(partition.error_code)}"
                )


def _when_acknowledged(
    topics: list[TopicProduceResponse],
    waiting: dict[tuple[str, int], RequiredOffset],
    timeout_s: float,
    context: RequestContext,
) -> DeferredResponse[ProduceResponse]:
    """Wait for the ISR."""
    delayed = DelayedProduce(waiting.values(), timeout_s, context.services.purgatory)
    return DeferredResponse(delayed, partial(_answer_acknowledged, topics, waiting, context))


def _answer_acknowledged(
    topics: list[TopicProduceResponse],
    waiting: dict[tuple[str, int], RequiredOffset],
    context: RequestContext,
) -> ProduceResponse:
    """REQUEST_TIMED_OUT for partitions that the ISR has not reached in time."""
    topics = [
        TopicProduceResponse(
            name=topic.name,
            partition_responses=[
                _acknowledged(topic.name, answer, waiting.get((topic.name, answer.index)), context)
                for answer in topic.partition_responses
            ],
        )
        for topic in topics
    ]
    return ProduceResponse(responses=topics, node_endpoints=_endpoints(topics, context))


def _acknowledged(
    topic: str,
    answer: PartitionProduceResponse,
    waited: RequiredOffset | None,
    context: RequestContext,
) -> PartitionProduceResponse:
    """The result of the append, or the error of its replication."""
    if waited is None:
        return answer
    partition, offset, acks = waited
    code = partition.acks_reached(offset, acks)
    if code == ErrorCode.NONE:
        return answer
    code = ErrorCode.REQUEST_TIMED_OUT if code is None else code
    return PartitionProduceResponse(
        index=answer.index,
        error_code=code,
        base_offset=answer.base_offset,
        log_append_time_ms=answer.log_append_time_ms,
        log_start_offset=answer.log_start_offset,
        current_leader=_current_leader(code, topic, answer.index, context),
    )


def error_response(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    """The error on every partition."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
