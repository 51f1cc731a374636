"""Answers LeaveGroup: members leave, or an administrator removes them.

Before version 3 one member leaves at a time, and its error is that of the answer; from 3 on several
may leave, a static one also by its instance id alone (KIP-345).
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.group.coordinator import LeavingMember
from broker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)


def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Each member for itself."""
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
    """The error of the whole; no member was removed."""
    return LeaveGroupResponse(error_code=code)
