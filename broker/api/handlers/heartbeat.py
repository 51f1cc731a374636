"""Handle Heartbeat: keep a member in its group, or tell it to rejoin.

Versions:
    v1 throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 static members (KIP-345)
    v4 flexible

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_group
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.security.acls import AclOperation


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """NONE or REBALANCE_IN_PROGRESS; ApiError if it is not a member."""
    authorize_group(context, AclOperation.READ, request.group_id)
    code = context.services.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(error_code=code)


def error_response(request: HeartbeatRequest, code: ErrorCode) -> HeartbeatResponse:
    """Only the error."""
    return HeartbeatResponse(error_code=code)
