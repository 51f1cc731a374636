"""FindCoordinator on one broker."""

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.broker import RunningBroker
from tests.support.wire import WireClient

GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.mark.parametrize("version", range(4))
def test_coordinator_of_a_group_is_this_broker(
    wire: WireClient, api_broker: RunningBroker, group: str, version: int
) -> None:
    found = wire.ask(FindCoordinatorRequest(key=group), version)
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
    assert f"{found.host}:{found.port}" == api_broker.bootstrap_servers


@pytest.mark.parametrize("version", [4, 5, 6])
def test_many_keys_have_a_coordinator_each(wire: WireClient, group: str, version: int) -> None:
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group, "other"])
    found = wire.ask(request, version).coordinators
    assert [(one.key, one.node_id, one.error_code) for one in found] == [
        (group, 1, ErrorCode.NONE),
        ("other", 1, ErrorCode.NONE),
    ]


def test_coordinator_of_a_transactional_id(wire: WireClient, transactional_id: str) -> None:
    found = wire.ask(FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION), 3)
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize(
    ("version", "key_type", "code"),
    [
        (3, 9, ErrorCode.INVALID_REQUEST),
        (3, SHARE, ErrorCode.INVALID_REQUEST),
        (6, SHARE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_key_types_without_coordinator(
    wire: WireClient, version: int, key_type: int, code: ErrorCode
) -> None:
    if version < 4:
        assert (
            wire.ask(FindCoordinatorRequest(key="k", key_type=key_type), version).error_code == code
        )
        return
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["k"])
    (found,) = wire.ask(request, version).coordinators
    assert (found.error_code, found.node_id) == (code, -1)
