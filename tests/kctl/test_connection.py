"""The connection of a command run: its error messages, and one client for all its queries."""

import asyncio
import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.errors import ApiError, ErrorCode
from broker.net import client as client_module
from broker.net.authentication import Security
from broker.net.broker_connection import BrokerConnection, Node, open_connection
from broker.net.client import Client
from broker.protocol.api_keys import ApiKey
from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import KAFKA_WITH, ask
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import run_kctl


@pytest.fixture(scope="module")
def one_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """The connections that are opened during the test."""
    found: list[Node] = []

    async def recorded(
        node: Node, client_id: str, timeout_s: float, security: Security
    ) -> BrokerConnection:
        found.append(node)
        return await open_connection(node, client_id, timeout_s, security)

    monkeypatch.setattr(client_module, "open_connection", recorded)
    return found


def refusal(code: ErrorCode, message: str) -> CliError:
    async def question(_: Client) -> None:
        raise ApiError(code, message)

    with (
        closing(Session(bootstrap_server="nowhere:1")) as session,
        pytest.raises(CliError) as caught,
    ):
        ask(session, question)
    return caught.value


def test_older_cluster_error_names_the_required_version() -> None:
    message = "IncrementalAlterConfigs needs versions 0 to 1, but the broker does not serve it"
    error = refusal(ErrorCode.UNSUPPORTED_VERSION, message)
    assert "too old" in error.message
    assert error.hint == "this needs Kafka 2.3 or newer"


def test_missing_basic_api_points_to_api_versions() -> None:
    error = refusal(ErrorCode.UNSUPPORTED_VERSION, "Fetch needs versions 4 to 16")
    assert "kctl api-versions" in error.hint


def test_other_api_errors_include_the_error_code() -> None:
    error = refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you")
    assert "not you (CLUSTER_AUTHORIZATION_FAILED)" in error.message.replace(": ", "", 1)


def test_table_of_versions_names_existing_apis() -> None:
    assert KAFKA_WITH.keys() <= {api.display_name for api in ApiKey}


def test_polls_of_one_run_share_its_connections(
    one_broker: RunningBroker, opened: list[Node]
) -> None:
    servers = one_broker.bootstrap_servers
    args = ("groups", "watch", "--all", "--count", "4", "--interval", "0.05", "-b", servers)
    assert run_kctl(*args).exit_code == 0
    # One to the bootstrap address, one to the broker under its id.
    assert len(opened) == 2


def test_connection_lost_between_polls_is_opened_again(tmp_path: Path, opened: list[Node]) -> None:
    with running_broker(tmp_path) as broker:
        session = Session(bootstrap_server=broker.bootstrap_servers)
        port = int(broker.bootstrap_servers.split(":")[1])
        assert ask(session, describe_cluster).brokers[0].port == port
    with closing(session):
        listener = f"PLAINTEXT://127.0.0.1:{port}"
        with running_broker(tmp_path, listeners=listener):
            assert ask(session, describe_cluster).brokers[0].port == port
    assert len(opened) == 2


def test_query_that_fails_leaves_no_task_behind(one_broker: RunningBroker) -> None:
    cancelled = []

    async def sleeper() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ApiError(ErrorCode.INVALID_REQUEST, "no")

    async def question(_: Client) -> None:
        await asyncio.gather(sleeper(), failing())

    session = Session(bootstrap_server=one_broker.bootstrap_servers)
    with closing(session), pytest.raises(CliError):
        ask(session, question)
    assert cancelled == [True]


def test_session_sent_to_another_process_has_no_connection(one_broker: RunningBroker) -> None:
    session = Session(bootstrap_server=one_broker.bootstrap_servers)
    with closing(session):
        ask(session, describe_cluster)
        assert pickle.loads(pickle.dumps(session)).connection is None  # noqa: S301
