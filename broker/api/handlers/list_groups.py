"""Handle ListGroups: the groups that this broker coordinates.

Versions:
    v1 throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 flexible
    v4 filter by state (KIP-518)
    v5 filter by type (KIP-848)

Deliberately missing: groups other than classic ones, which need KRaft.
"""

from broker.api.authorization import is_authorized_on_cluster, unauthorized
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.group.coordinator import CLASSIC_GROUP_TYPE
from broker.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from broker.security.acls import AclOperation, ResourceType


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """List the groups; COORDINATOR_LOAD_IN_PROGRESS while some are being loaded."""
    code, groups = context.services.groups.list_groups(request.states_filter, request.types_filter)
    if not is_authorized_on_cluster(context, AclOperation.DESCRIBE, quiet=True):
        names = [group.group_id for group in groups]
        hidden = unauthorized(context, AclOperation.DESCRIBE, names, ResourceType.GROUP, quiet=True)
        groups = [group for group in groups if group.group_id not in hidden]
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
    """Only the error."""
    return ListGroupsResponse(error_code=code)
