"""Answers ConsumerGroupHeartbeat: the new protocol (KIP-848) is not offered.

A Kafka of the ZooKeeper era serves the API and says so too.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    """UNSUPPORTED_VERSION."""
    return error_response(request, ErrorCode.UNSUPPORTED_VERSION)


def error_response(
    request: ConsumerGroupHeartbeatRequest, code: ErrorCode
) -> ConsumerGroupHeartbeatResponse:
    """Nothing but the error."""
    return ConsumerGroupHeartbeatResponse(error_code=code)
