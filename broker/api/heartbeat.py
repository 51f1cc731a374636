"""Answers Heartbeat: a member lives, or learns that it must join again."""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """NONE, REBALANCE_IN_PROGRESS, or why it is no member (by way of ApiError)."""
    code = context.services.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(error_code=code)


def error_response(request: HeartbeatRequest, code: ErrorCode) -> HeartbeatResponse:
    """Nothing but the error."""
    return HeartbeatResponse(error_code=code)
