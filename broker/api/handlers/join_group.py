"""Handle JoinGroup: a member joins its group and waits for the rebalance.

The response is sent when the group's next generation starts.

Versions:
    v0 the session timeout is also the rebalance timeout
    v1 rebalance timeout
    v2 throttle time
    v3 clients wait out a throttle time themselves, after the response (KIP-219)
    v4 a new dynamic member first gets its id, with MEMBER_ID_REQUIRED (KIP-394)
    v5 static members (KIP-345)
    v6 flexible
    v7 protocol type; no protocol is null instead of empty (KIP-559)
    v8 the reason for joining (KIP-800)
    v9 a static leader that rejoins a stable group may skip the assignment (KIP-814)

Deliberately missing: nothing.
"""

from asyncio import Future
from collections.abc import Awaitable

from broker.api.authorization import is_authorized
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.group.member import JoiningMember, JoinResult
from broker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from broker.security.acls import AclOperation, ResourceType


def handle(
    request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """Join; responds at once on errors, and to a member that missed the last response."""
    if not is_authorized(context, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return JoinGroupResponse(
            error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED,
            protocol_name=None if context.api_version >= 7 else "",
        )
    future = context.services.groups.join(request.group_id, _joining(request, context))
    if future.done():
        return _response(future.result(), context.api_version)
    return _wait(future, context.api_version)


async def _wait(future: Future[JoinResult], version: int) -> JoinGroupResponse:
    return _response(await future, version)


def _joining(request: JoinGroupRequest, context: RequestContext) -> JoiningMember:
    version = context.api_version
    return JoiningMember(
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=f"/{context.peer.host}",
        rebalance_timeout_ms=(
            request.session_timeout_ms if version == 0 else request.rebalance_timeout_ms
        ),
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        require_known_member_id=version >= 4,
        can_skip_assignment=version >= 9,
        reason=request.reason or "not provided",
    )


def _response(result: JoinResult, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name or (None if version >= 7 else ""),
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ],
    )


def error_response(request: JoinGroupRequest, code: ErrorCode) -> JoinGroupResponse:
    """Only the error."""
    return JoinGroupResponse(error_code=code)
