"""Answers OffsetDelete (KIP-496): forgets offsets of topics that a group reads no longer."""

from collections.abc import Mapping

from broker.api.context import RequestContext
from broker.api.partitions import split_by_existence
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    """What exists is forgotten, unless a member reads it."""
    asked = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    known, unknown = split_by_existence(asked, context)
    deleted = await context.services.groups.offsets.delete(request.group_id, known)
    return _response(request, {**deleted, **unknown})


def _response(
    request: OffsetDeleteRequest, errors: Mapping[TopicPartition, ErrorCode]
) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=errors[TopicPartition(topic.name, partition.partition_index)],
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def error_response(request: OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse:
    """The error of the group; nothing was forgotten."""
    return OffsetDeleteResponse(error_code=code)
