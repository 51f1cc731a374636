"""Answers StopReplica: the controller takes replicas away from this broker."""

from collections.abc import Awaitable

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from broker.replica.controller_requests import stopped_by


def handle(request: StopReplicaRequest, context: RequestContext) -> Awaitable[StopReplicaResponse]:
    """Every partition for itself, unless the request as a whole comes too late."""
    return context.services.controller_requests.stop_replica(request)


def error_response(request: StopReplicaRequest, code: ErrorCode) -> StopReplicaResponse:
    """The error for the whole, and on every partition."""
    return StopReplicaResponse(
        error_code=code,
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=name.topic, partition_index=name.partition, error_code=code
            )
            for name, _ in stopped_by(request)
        ],
    )
