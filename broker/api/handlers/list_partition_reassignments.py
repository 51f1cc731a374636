"""Handle ListPartitionReassignments (KIP-455); controller only.

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_cluster, not_authorized
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from broker.security.acls import AclOperation


async def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """List the requested partitions (null: all) that are being reassigned."""
    authorize_cluster(context, AclOperation.DESCRIBE)
    ongoing = await context.services.controller.reassignments()
    asked = set(ongoing)
    if request.topics is not None:
        asked &= {TopicPartition(t.name, i) for t in request.topics for i in t.partition_indexes}
    by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
    for name in sorted(asked):
        assignment = ongoing[name]
        moving = OngoingPartitionReassignment(
            partition_index=name.partition,
            replicas=list(assignment.replicas),
            adding_replicas=list(assignment.adding_replicas),
            removing_replicas=list(assignment.removing_replicas),
        )
        by_topic.setdefault(name.topic, []).append(moving)
    return ListPartitionReassignmentsResponse(
        error_message="",
        topics=[
            OngoingTopicReassignment(name=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
    )


def error_response(
    request: ListPartitionReassignmentsRequest, code: ErrorCode
) -> ListPartitionReassignmentsResponse:
    """Only the error."""
    is_denied = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    message = not_authorized(ApiKey.LIST_PARTITION_REASSIGNMENTS) if is_denied else None
    return ListPartitionReassignmentsResponse(error_code=code, error_message=message)
