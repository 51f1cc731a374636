"""Answers DeleteGroups (KIP-229): groups without members, with their offsets."""

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    """Each group for itself; one named twice is deleted once."""
    group_ids = dict.fromkeys(request.groups_names)
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=await _delete(group_id, context))
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
