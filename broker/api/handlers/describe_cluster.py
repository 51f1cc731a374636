"""Handle DescribeCluster (KIP-700): what Metadata says about the cluster, without topics.

Versions:
    v1 controllers as endpoints (KIP-919)

Deliberately missing: controllers (endpoint type 2), which only KRaft clusters have.
"""

from broker.api.authorization import NOT_REQUESTED, cluster_operations
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS, _CONTROLLERS = 1, 2  # the endpoint types


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """Describe the cluster, with the endpoints of the client's listener."""
    if request.endpoint_type not in (_BROKERS, _CONTROLLERS):
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an "
            "endpoint of type CONTROLLER",
        )
    metadata = context.services.metadata
    return DescribeClusterResponse(
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        cluster_authorized_operations=(
            cluster_operations(context)
            if request.include_cluster_authorized_operations
            else NOT_REQUESTED
        ),
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.broker_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in metadata.brokers_of(context.peer.listener_name)
        ],
    )


def error_response(request: DescribeClusterRequest, code: ErrorCode) -> DescribeClusterResponse:
    """Only the error."""
    return DescribeClusterResponse(error_code=code)
