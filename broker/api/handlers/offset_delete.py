"""Handle OffsetDelete (KIP-496): delete offsets of topics that a group does not consume any more.

Deliberately missing: nothing.
"""

from collections.abc import Mapping

from broker.api.authorization import authorize_group
from broker.api.context import RequestContext
from broker.api.partitions import by_topic, split_by_existence, split_by_permission
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from broker.security.acls import AclOperation


async def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    """Delete offsets, unless a member is subscribed to the topic."""
    authorize_group(context, AclOperation.DELETE, request.group_id)
    asked = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    allowed, denied = split_by_permission(asked, AclOperation.READ, context)
    known, unknown = split_by_existence(allowed, context)
    deleted = await context.services.groups.offsets.delete(request.group_id, known)
    return _response({**deleted, **unknown, **denied})


def _response(errors: Mapping[TopicPartition, ErrorCode]) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=index, error_code=code)
                    for index, code in partitions
                ],
            )
            for topic, partitions in by_topic(errors)
        ]
    )


def error_response(request: OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse:
    """The error of the group; nothing was deleted."""
    return OffsetDeleteResponse(error_code=code)
