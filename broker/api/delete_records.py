"""Answers DeleteRecords (KIP-107): moves the log start offset of partitions this broker leads."""

from typing import Final

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from broker.topic_names import INTERNAL_TOPICS

_HIGH_WATERMARK: Final = -1


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    """Every partition for itself."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(topic.name, asked, context) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(
    topic: str, asked: DeleteRecordsPartition, context: RequestContext
) -> DeleteRecordsPartitionResult:
    if topic in INTERNAL_TOPICS:
        return _failed(asked.partition_index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    try:
        partition = context.services.replicas.find(topic, asked.partition_index)
        low_watermark = partition.delete_records(
            None if asked.offset == _HIGH_WATERMARK else asked.offset
        )
    except ApiError as error:
        return _failed(asked.partition_index, error.code)
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=low_watermark
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
