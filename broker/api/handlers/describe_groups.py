"""Handle DescribeGroups: state, members and assignments of groups.

A group that does not exist is reported as Dead, without error.

Versions:
    v1 throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 authorized operations (KIP-430)
    v4 static members (KIP-345)
    v5 flexible

Deliberately missing: nothing.
"""

from broker.api.authorization import NOT_REQUESTED, authorize_group, authorized_operations
from broker.api.context import RequestContext
from broker.api.duplicates import remove_duplicates
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from broker.security.acls import AclOperation, ResourceType


def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    """Describe one group after the other."""
    remove_duplicates(request)
    return DescribeGroupsResponse(
        groups=[
            _describe(group_id, request.include_authorized_operations, context)
            for group_id in request.groups
        ]
    )


def _describe(group_id: str, with_operations: bool, context: RequestContext) -> DescribedGroup:
    try:
        authorize_group(context, AclOperation.DESCRIBE, group_id)
        group = context.services.groups.describe(group_id)
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    operations = NOT_REQUESTED
    if with_operations:
        operations = authorized_operations(context, ResourceType.GROUP, group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
        authorized_operations=operations,
    )


def error_response(request: DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse:
    """The error on every group."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups]
    )
