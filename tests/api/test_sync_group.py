"""SyncGroup of a group with one member; tests/group has the state machine behind it."""

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.api.requests import join_as_only_member
from tests.support.wire import WireClient


@pytest.mark.parametrize("version", range(6))
def test_leader_gets_what_it_assigned(wire: WireClient, group: str, version: int) -> None:
    member_id = join_as_only_member(wire, group).member_id
    assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=b"partitions")
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    request = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id=member_id,
        assignments=[assignment],
        **protocol,
    )
    synced = wire.ask(request, version)
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"partitions")


@pytest.mark.parametrize(
    ("generation_id", "member_id", "code"),
    [
        (1, "unknown", ErrorCode.UNKNOWN_MEMBER_ID),
        (9, None, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_wrong_member_or_generation(
    wire: WireClient, group: str, generation_id: int, member_id: str | None, code: ErrorCode
) -> None:
    own = join_as_only_member(wire, group).member_id
    request = SyncGroupRequest(
        group_id=group, generation_id=generation_id, member_id=member_id or own
    )
    assert wire.ask(request, 3).error_code == code


def test_protocol_that_is_not_the_generations(wire: WireClient, group: str) -> None:
    own = join_as_only_member(wire, group).member_id
    request = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id=own,
        protocol_type="consumer",
        protocol_name="sticky",
    )
    assert wire.ask(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
