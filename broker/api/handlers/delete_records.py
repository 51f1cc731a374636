"""Handle DeleteRecords (KIP-107): raise the log start offset of partitions that this broker leads.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible

Deliberately missing: nothing.
"""

from collections.abc import Awaitable
from typing import Final

from broker.api.authorization import unauthorized
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from broker.replica.delayed_operations import DelayedDeleteRecords, RequiredOffset
from broker.replica.partition import Partition
from broker.replica.purgatory import Purgatory
from broker.security.acls import AclOperation
from broker.topic_names import INTERNAL_TOPICS

_HIGH_WATERMARK: Final = -1


def handle(
    request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    """Delete in every partition; the response waits until all live replicas have done the same."""
    denied = unauthorized(context, AclOperation.DELETE, (topic.name for topic in request.topics))
    wanted: dict[tuple[str, int], RequiredOffset] = {}
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _failed(asked.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    if topic.name in denied
                    else _delete(topic.name, asked, context, wanted)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    if all(partition.low_watermark >= offset for partition, offset, _ in wanted.values()):
        return response
    timeout_s = request.timeout_ms / 1000
    return _when_followed(response, wanted, timeout_s, context.services.purgatory)


def _delete(
    topic: str,
    asked: DeleteRecordsPartition,
    context: RequestContext,
    wanted: dict[tuple[str, int], RequiredOffset],
) -> DeleteRecordsPartitionResult:
    if topic in INTERNAL_TOPICS:
        return _failed(asked.partition_index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        partition = context.services.replicas.find(topic, asked.partition_index)
        offset = partition.delete_records(None if asked.offset == _HIGH_WATERMARK else asked.offset)
    except ApiError as error:
        return _failed(asked.partition_index, error.code)
    wanted[topic, asked.partition_index] = RequiredOffset(partition, offset)
    return _done(asked.partition_index, partition)


async def _when_followed(
    response: DeleteRecordsResponse,
    wanted: dict[tuple[str, int], RequiredOffset],
    timeout_s: float,
    purgatory: Purgatory,
) -> DeleteRecordsResponse:
    """REQUEST_TIMED_OUT for partitions whose followers do not delete in time."""
    await DelayedDeleteRecords(wanted.values(), timeout_s, purgatory)
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _followed(answer, wanted.get((topic.name, answer.partition_index)))
                    for answer in topic.partitions
                ],
            )
            for topic in response.topics
        ]
    )


def _followed(
    answer: DeleteRecordsPartitionResult, wanted: RequiredOffset | None
) -> DeleteRecordsPartitionResult:
    if wanted is None:
        return answer
    partition, offset, _ = wanted
    if not partition.is_leader:
        return _failed(answer.partition_index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if partition.low_watermark < offset:
        return _failed(answer.partition_index, ErrorCode.REQUEST_TIMED_OUT)
    return _done(answer.partition_index, partition)


def _done(index: int, partition: Partition) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=partition.low_watermark
    )


def _failed(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=code)


def error_response(request: DeleteRecordsRequest, code: ErrorCode) -> DeleteRecordsResponse:
    """The error on every partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_failed(asked.partition_index, code) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )
