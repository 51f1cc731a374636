"""Handle ConsumerGroupHeartbeat (KIP-848): UNSUPPORTED_VERSION, as Kafka answers in ZooKeeper mode.

Deliberately missing: the new group protocol, which needs KRaft.
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
    """Only the error."""
    return ConsumerGroupHeartbeatResponse(error_code=code)
