"""Handle StopReplica: the controller stops replicas of this broker, and may delete them.

Versions:
    v1 grouped by topic, broker epoch (KIP-380)
    v2 flexible
    v3 leader epoch and deletion per partition (KIP-570)
    v4 requests of a KRaft controller (KIP-866)

Deliberately missing: migration to KRaft.
"""

from collections.abc import Awaitable

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from broker.replica.controller_requests import stopped_by
from broker.security.acls import AclOperation


def handle(request: StopReplicaRequest, context: RequestContext) -> Awaitable[StopReplicaResponse]:
    """Stop each replica; an outdated request is an error of its own."""
    authorize_cluster(context, AclOperation.CLUSTER_ACTION)
    return context.services.controller_requests.stop_replica(request)


def error_response(request: StopReplicaRequest, code: ErrorCode) -> StopReplicaResponse:
    """The error of the request, and on every partition."""
    return StopReplicaResponse(
        error_code=code,
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=name.topic, partition_index=name.partition, error_code=code
            )
            for name, _ in stopped_by(request)
        ],
    )
