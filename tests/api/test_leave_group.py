"""LeaveGroup of a group with one member; tests/group has the state machine behind it."""

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.api.requests import join, join_as_only_member
from tests.support.wire import WireClient


@pytest.mark.parametrize("version", range(3))
def test_old_versions_leave_one_by_one(wire: WireClient, group: str, version: int) -> None:
    member_id = join_as_only_member(wire, group).member_id
    request = LeaveGroupRequest(group_id=group, member_id=member_id)
    assert wire.ask(request, version).error_code == ErrorCode.NONE
    assert wire.ask(request, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3, 6))
def test_every_member_has_its_own_error(wire: WireClient, group: str, version: int) -> None:
    member_id = join_as_only_member(wire, group).member_id
    members = [MemberIdentity(member_id=name) for name in (member_id, "unknown")]
    left = wire.ask(LeaveGroupRequest(group_id=group, members=members), version)
    assert left.error_code == ErrorCode.NONE
    assert [member.error_code for member in left.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


def test_static_member_is_removed_by_its_instance_id(wire: WireClient, group: str) -> None:
    join(wire, group, group_instance_id="static-1")
    removed = MemberIdentity(member_id="", group_instance_id="static-1")
    left = wire.ask(LeaveGroupRequest(group_id=group, members=[removed]), 5)
    assert [member.error_code for member in left.members] == [ErrorCode.NONE]
