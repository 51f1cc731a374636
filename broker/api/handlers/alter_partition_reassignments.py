"""Handle AlterPartitionReassignments (KIP-455); controller only.

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_cluster, not_authorized
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from broker.security.acls import AclOperation


async def handle(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Set the target replicas of each partition; null cancels a reassignment."""
    authorize_cluster(context, AclOperation.ALTER)
    context.services.controller.check_active()
    return AlterPartitionReassignmentsResponse(
        error_message="",
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    await _reassign(topic.name, wanted, context) for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


async def _reassign(
    topic: str, wanted: ReassignablePartition, context: RequestContext
) -> ReassignablePartitionResponse:
    name = TopicPartition(topic, wanted.partition_index)
    try:
        await context.services.controller.reassign(name, wanted.replicas)
    except ApiError as error:
        return _result(name, error.code, error.message)
    return _result(name, ErrorCode.NONE, None)


def _result(
    name: TopicPartition, code: ErrorCode, message: str | None
) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=name.partition, error_code=code, error_message=message
    )


def error_response(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    """The error of the request, and on every partition."""
    is_denied = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    message = not_authorized(ApiKey.ALTER_PARTITION_REASSIGNMENTS) if is_denied else None
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _result(TopicPartition(topic.name, wanted.partition_index), code, message)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
