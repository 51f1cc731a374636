"""Handle DescribeGroups. A group that does not exist is reported as Dead, without error.

Versions:
    v1 throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 authorized operations (KIP-430)
    v4 static members (KIP-345)
    v5 flexible

Deliberately missing: nothing.
"""

from typing import Final

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_ALL_OPERATIONS: Final = 1 << 3 | 1 << 6 | 1 << 8
"""Read, delete and describe, by their ACL codes: all operations on a group (KIP-430)."""


def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    """Describe one group after the other."""
    return DescribeGroupsResponse(
        groups=[
            _describe(group_id, request.include_authorized_operations, context)
            for group_id in request.groups
        ]
    )


def _describe(group_id: str, with_operations: bool, context: RequestContext) -> DescribedGroup:
    try:
        group = context.services.groups.describe(group_id)
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    operations = {"authorized_operations": _ALL_OPERATIONS} if with_operations else {}
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
        **operations,
    )


def error_response(request: DescribeGroupsRequest, code: ErrorCode) -> DescribeGroupsResponse:
    """The error on every group."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups]
    )
