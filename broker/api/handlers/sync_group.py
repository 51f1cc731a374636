"""Handle SyncGroup: a member gets its assignment from the leader of the group.

The response is sent when the leader's assignment is stored.

Versions:
    v1 throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 static members (KIP-345)
    v4 flexible
    v5 protocol type and name, which must be those of the generation (KIP-559)

Deliberately missing: nothing.
"""

from asyncio import Future
from collections.abc import Awaitable

from broker.api.authorization import authorize_group
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.group.member import SyncResult
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from broker.security.acls import AclOperation


def handle(
    request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    """Get the assignment; responds at once in a stable group, and on errors."""
    protocol = (request.protocol_type, request.protocol_name)
    if context.api_version >= 5 and None in protocol:
        return error_response(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    authorize_group(context, AclOperation.READ, request.group_id)
    future = context.services.groups.sync(
        request.group_id,
        (request.member_id, request.group_instance_id, request.generation_id),
        protocol,
        {given.member_id: given.assignment for given in request.assignments},
    )
    if future.done():
        return _response(future.result())
    return _wait(future)


async def _wait(future: Future[SyncResult]) -> SyncGroupResponse:
    return _response(await future)


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


def error_response(request: SyncGroupRequest, code: ErrorCode) -> SyncGroupResponse:
    """Only the error."""
    return SyncGroupResponse(error_code=code)
