"""Servers that lack what kctl needs: old brokers, and ports where no Kafka listens.

No such broker can be started here, so a scripted one answers ApiVersions and Metadata.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType

import pytest

from broker.net.poller import BrokerLoop
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.kctl.test_partial_answers import READING
from tests.net.scripted_broker import ScriptedBroker, cluster_of, running
from tests.support.kctl import run_kctl

pytestmark = pytest.mark.timeout(120)

Versions = Mapping[ApiKey, tuple[int, int]]

METADATA_V0: Versions = {ApiKey.API_VERSIONS: (0, 0), ApiKey.METADATA: (0, 0)}
"""The least with which a client can find the brokers of a cluster."""
METADATA_V1: Versions = {ApiKey.API_VERSIONS: (0, 0), ApiKey.METADATA: (0, 1)}

CHANGES = [
    ("topics", "create", "new", "-p", "1", "--replication-factor", "1"),
    ("topics", "delete", "orders", "--yes"),
    ("topics", "alter", "orders", "-p", "3", "--yes"),
    ("configs", "set", "topic:orders", "retention.ms=1", "--yes"),
    ("delete-records", "orders", "--all", "--yes"),
    ("groups", "delete", "billing", "--yes"),
    ("groups", "reset-offsets", "billing", "--all-topics", "--to-earliest", "--execute"),
    ("elect-leaders", "orders", "--yes"),
    ("throttle", "set", "1MB", "--yes"),
    ("acls", "list"),
    ("users", "list"),
    ("quotas", "list"),
    ("tokens", "list"),
]
COMMANDS = [*CHANGES, *(args for args in READING if "replicated" not in args)]


@contextmanager
def old_broker(versions: Versions) -> Iterator[str]:
    """The address of a broker with only these APIs, which leads the partitions of `orders`."""
    address: Future[str] = Future()
    stop = asyncio.Event()

    async def serve() -> None:
        async with running({}, versions) as broker:
            broker.scripts[ApiKey.METADATA] = lambda _: _metadata(broker)
            address.set_result(broker.address)
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=BrokerLoop) as runner:
            loops.append(runner.get_loop())
            runner.run(serve())

    loops: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield address.result(10)
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()


def _metadata(broker: ScriptedBroker) -> MetadataResponse:
    # The leader is not the preferred one, so that an election is needed.
    partitions = [
        MetadataResponsePartition(
            partition_index=number, leader_id=0, replica_nodes=[1, 0], isr_nodes=[1, 0]
        )
        for number in range(2)
    ]
    return MetadataResponse(
        controller_id=0,
        brokers=cluster_of(broker).brokers,
        topics=[MetadataResponseTopic(name="orders", partitions=partitions)],
    )


@pytest.fixture(scope="module", params=[METADATA_V0, METADATA_V1], ids=["v0", "v1"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    with old_broker(MappingProxyType(request.param)) as found:
        yield found


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_missing_api_is_named(address: str, args: tuple[str, ...]) -> None:
    result = run_kctl(*args, "-b", address, "--timeout", "3")
    assert "internal error" not in result.stderr
    assert "Traceback" not in result.stderr
    if args == ("api-versions",):
        assert result.exit_code == 0, result.stderr
        return
    assert result.exit_code == 1, (result.output, result.stderr)
    names = {api.name.replace("_", "").lower() for api in ApiKey}
    words = result.stderr.replace(",", " ").replace(":", " ").split()
    assert names & {word.lower() for word in words}, result.stderr


def test_queries_of_metadata_work(address: str) -> None:
    listed = run_kctl("topics", "list", "-b", address, "-o", "name")
    assert (listed.exit_code, listed.output) == (0, "orders\n"), listed.stderr
    assert run_kctl("brokers", "list", "-b", address, "-o", "name").output == "0\n"


def test_api_versions_lists_what_an_old_broker_has(address: str) -> None:
    result = run_kctl("api-versions", "-b", address, "-o", "json")
    assert result.exit_code == 0, result.stderr
    assert {row["api"] for row in result.json} == {"ApiVersions", "Metadata"}


class _NotKafka(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_port_without_kafka_is_named(http_port: int, args: tuple[str, ...]) -> None:
    result = run_kctl(*args, "-b", f"127.0.0.1:{http_port}", "--timeout", "3")
    assert "internal error" not in result.stderr
    assert result.exit_code in (1, 4), result.stderr
    assert f"127.0.0.1:{http_port}" in result.stderr


@pytest.fixture(scope="module")
def http_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _NotKafka) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()
