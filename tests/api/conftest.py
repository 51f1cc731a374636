"""One broker for the tests of single APIs; each test uses topics and groups of its own."""

import itertools
import time
from collections.abc import Iterator

import pytest

from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.api.requests import create_topic
from tests.support.broker import RunningBroker, running_broker
from tests.support.wire import WireClient

QUICK = {
    "broker_id": 1,
    "group_initial_rebalance_delay_ms": 0,
    "offsets_topic_num_partitions": 1,
    "transaction_state_log_num_partitions": 1,
}
"""The first member of a group does not wait for others; internal topics are created quickly."""

_COORDINATOR_S = 20
_numbers = itertools.count()


@pytest.fixture(scope="session")
def api_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker process that serves all tests; no request may make it log a traceback."""
    with running_broker(tmp_path_factory.mktemp("api"), **QUICK) as running:
        yield running
        assert "Traceback" not in running.output()


@pytest.fixture
def wire(api_broker: RunningBroker) -> Iterator[WireClient]:
    """A connection to the broker."""
    with WireClient(api_broker.bootstrap_servers) as client:
        yield client


@pytest.fixture
def topic(wire: WireClient) -> str:
    """A topic with two partitions."""
    name = f"topic-{next(_numbers)}"
    create_topic(wire, name, num_partitions=2)
    return name


@pytest.fixture
def group(wire: WireClient) -> str:
    """The name of a group that does not exist yet, but has a coordinator."""
    wait_for_coordinator(wire, key_type=0)
    return f"group-{next(_numbers)}"


@pytest.fixture
def transactional_id(wire: WireClient) -> str:
    """A transactional id that was not used yet, but has a coordinator."""
    wait_for_coordinator(wire, key_type=1)
    return f"transaction-{next(_numbers)}"


def wait_for_coordinator(wire: WireClient, key_type: int) -> None:
    deadline = time.monotonic() + _COORDINATOR_S
    while wire.ask(FindCoordinatorRequest(key="any", key_type=key_type), 2).error_code:
        assert time.monotonic() < deadline, "there is no coordinator"
        time.sleep(0.02)
