"""JoinGroup on one broker; tests/group has the state machine behind it."""

from typing import Any

import pytest

from broker.errors import ErrorCode
from tests.api.requests import join, join_as_only_member
from tests.support.wire import WireClient


@pytest.mark.parametrize("version", range(4))
def test_old_versions_join_with_one_request(wire: WireClient, group: str, version: int) -> None:
    joined = join(wire, group, version=version)
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert joined.leader == joined.member_id
    assert [member.member_id for member in joined.members] == [joined.member_id]


@pytest.mark.parametrize("version", range(4, 10))
def test_new_member_first_gets_its_id(wire: WireClient, group: str, version: int) -> None:
    first = join(wire, group, version=version)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("test-")  # the client id
    second = join(wire, group, first.member_id, version=version)
    assert (second.error_code, second.generation_id) == (ErrorCode.NONE, 1)
    assert second.protocol_name == "range"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 10**9}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_invalid_requests_are_refused(
    wire: WireClient, group: str, fields: dict[str, Any], code: ErrorCode
) -> None:
    assert join(wire, group, **fields).error_code == code


def test_empty_group_id_is_invalid(wire: WireClient, group: str) -> None:
    assert join(wire, "").error_code == ErrorCode.INVALID_GROUP_ID


def test_member_with_another_protocol_type_is_refused(wire: WireClient, group: str) -> None:
    join_as_only_member(wire, group)
    other = join(wire, group, version=3, protocol_type="connect")
    assert other.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_static_member_joins_with_one_request(wire: WireClient, group: str) -> None:
    joined = join(wire, group, group_instance_id="static-1")
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert joined.member_id.startswith("static-1-")
