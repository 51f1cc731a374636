"""Contracts run over every client that can do what their class `needs`."""

import itertools
import shutil
from collections.abc import Iterator

import pytest

from tests.clients.adapters import clients_that
from tests.clients.face import Client
from tests.clients.librdkafka import LibrdkafkaAdmin
from tests.support.broker import RunningBroker, running_broker

QUICK = {
    "group_initial_rebalance_delay_ms": 0,
    "offsets_topic_num_partitions": 4,
    "transaction_state_log_num_partitions": 4,
}
"""Internal topics with few partitions, and no initial rebalance delay."""

numbers = itertools.count()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `client` every adapter with the abilities that the test's class needs."""
    if "client" in metafunc.fixturenames:
        needs = getattr(metafunc.cls, "needs", ())
        metafunc.parametrize("client", [_param(client) for client in clients_that(*needs)])


def _param(client: Client) -> object:
    is_missing = client.name == "kcat" and shutil.which("kcat") is None
    marks = (
        [pytest.mark.skip(reason="kcat is not installed: make test-tools")] if is_missing else []
    )
    return pytest.param(client, id=client.name, marks=marks)


@pytest.fixture(scope="session")
def client_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker for all contracts; it must not log a traceback."""
    with running_broker(tmp_path_factory.mktemp("clients"), **QUICK) as running:
        yield running
        assert "Traceback" not in running.output()


@pytest.fixture
def servers(client_broker: RunningBroker) -> str:
    return client_broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    """A topic of the test's own, with four partitions; also a name for its group."""
    name = f"topic-{next(numbers)}"
    LibrdkafkaAdmin(servers).create_topic(name, 4, {})
    return name
