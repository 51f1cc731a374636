"""Answers ListGroups: those this broker coordinates.

Version 4 filters by state (KIP-518), version 5 by type (KIP-848); all groups here are classic.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.group.coordinator import CLASSIC_GROUP_TYPE
from broker.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """While some are being loaded, the others are listed with an error that says so."""
    code, groups = context.services.groups.list_groups(request.states_filter, request.types_filter)
    return ListGroupsResponse(
        error_code=code,
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.membership.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC_GROUP_TYPE,
            )
            for group in groups
        ],
    )


def error_response(request: ListGroupsRequest, code: ErrorCode) -> ListGroupsResponse:
    """Nothing but the error."""
    return ListGroupsResponse(error_code=code)
