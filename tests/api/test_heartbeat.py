"""Heartbeat of a group with one member; tests/group has the state machine behind it."""

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from tests.api.requests import join_as_only_member
from tests.support.wire import WireClient


def stable_member(wire: WireClient, group: str) -> str:
    member_id = join_as_only_member(wire, group).member_id
    request = SyncGroupRequest(group_id=group, generation_id=1, member_id=member_id)
    assert wire.ask(request, 3).error_code == ErrorCode.NONE
    return member_id


@pytest.mark.parametrize("version", range(5))
def test_member_of_a_stable_group(wire: WireClient, group: str, version: int) -> None:
    member_id = stable_member(wire, group)
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id=member_id)
    assert wire.ask(request, version).error_code == ErrorCode.NONE


def test_wrong_member_or_generation(wire: WireClient, group: str) -> None:
    member_id = stable_member(wire, group)
    unknown = HeartbeatRequest(group_id=group, generation_id=1, member_id="unknown")
    assert wire.ask(unknown, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    late = HeartbeatRequest(group_id=group, generation_id=0, member_id=member_id)
    assert wire.ask(late, 4).error_code == ErrorCode.ILLEGAL_GENERATION


def test_group_that_does_not_exist(wire: WireClient, group: str) -> None:
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id="any")
    assert wire.ask(request, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
