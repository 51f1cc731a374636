"""Handle LeaveGroup: members leave, or an administrator removes them.

Versions:
    v1 throttle time
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 many members, static ones also by instance id alone; an error for each (KIP-345)
    v4 flexible
    v5 the reason for leaving (KIP-800)

Deliberately missing: nothing.
"""

from broker.api.authorization import authorize_group
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.group.coordinator import LeavingMember
from broker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from broker.security.acls import AclOperation


def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Remove one member after the other."""
    authorize_group(context, AclOperation.READ, request.group_id)
    members = [
        LeavingMember(member.member_id, member.group_instance_id, member.reason)
        for member in request.members
    ]
    if context.api_version < 3:
        members = [LeavingMember(request.member_id)]
    errors = context.services.groups.leave(request.group_id, members)
    if context.api_version < 3:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for member, code in zip(members, errors, strict=True)
        ]
    )


def error_response(request: LeaveGroupRequest, code: ErrorCode) -> LeaveGroupResponse:
    """The error of the request; no member was removed."""
    return LeaveGroupResponse(error_code=code)
