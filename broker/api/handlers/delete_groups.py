"""Handle DeleteGroups (KIP-229): delete groups that have no members, with their offsets.

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible

Deliberately missing: nothing.
"""

from broker.api.authorization import unauthorized
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from broker.security.acls import AclOperation, ResourceType


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    """Delete one group after the other; a group that is named twice is deleted once."""
    group_ids = dict.fromkeys(request.groups_names)
    denied = unauthorized(context, AclOperation.DELETE, group_ids, ResourceType.GROUP)
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(
                group_id=group_id,
                error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
                if group_id in denied
                else await _delete(group_id, context),
            )
            for group_id in group_ids
        ]
    )


async def _delete(group_id: str, context: RequestContext) -> ErrorCode:
    try:
        await context.services.groups.offsets.delete_group(group_id)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def error_response(request: DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse:
    """The error on every group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
