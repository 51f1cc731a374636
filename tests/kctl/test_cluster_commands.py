"""`kctl cluster` and `kctl brokers` on our broker."""

import shlex
import socket
from collections.abc import Iterator

import pytest

from broker.model import Uuid
from kctl.docs.tree import walk_commands
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl
from tests.support.processes import free_port

# Examples on files and on brokers of their own are tried where those commands are tested: those
# of dump-log in tests/dump/test_segments.py, those with a ZooKeeper in
# tests/cluster/test_replicas_list.py.
EXAMPLES = [
    example
    for command in walk_commands()
    if command.path[1:2] != ("dump-log",)
    for example in command.examples
    if "localhost:9092" in example and "-z localhost:2181" not in example
]


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(kctl: Kctl, shared_broker: RunningBroker, example: str) -> None:
    words = shlex.split(example.replace("localhost:9092", shared_broker.bootstrap_servers))
    result = kctl(*words[1:])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.output


def test_brokers_list_names_the_broker_and_where_it_listens(
    kctl: Kctl, shared_broker: RunningBroker
) -> None:
    (row,) = kctl("brokers", "list", "-b", shared_broker.bootstrap_servers, "-o", "json").json
    assert f"{row['host']}:{row['port']}" == shared_broker.bootstrap_servers
    assert row["controller"] is True


def test_cluster_without_a_verb_is_cluster_describe(
    kctl: Kctl, shared_broker: RunningBroker
) -> None:
    servers = shared_broker.bootstrap_servers
    short, long = kctl("cluster", "-b", servers), kctl("cluster", "describe", "-b", servers)
    assert short == long
    assert servers in short.output


def test_cluster_id_is_a_kafka_uuid_alone_on_its_line(
    kctl: Kctl, shared_broker: RunningBroker
) -> None:
    output = kctl("cluster", "id", "-b", shared_broker.bootstrap_servers).output
    assert str(Uuid.parse(output.strip())) == output.strip()


def test_api_versions_lists_the_apis_of_the_broker(
    kctl: Kctl, shared_broker: RunningBroker
) -> None:
    rows = kctl("api-versions", "-b", shared_broker.bootstrap_servers, "-o", "json").json
    served = {row["api"]: row for row in rows}
    assert {"ApiVersions", "Metadata"} <= served.keys()
    assert served["ApiVersions"]["used_version"] == 4


def test_refused_connection_names_the_address_and_a_hint(kctl: Kctl) -> None:
    address = f"127.0.0.1:{free_port()}"
    result = kctl("brokers", "list", "-b", address, "--timeout", "10")
    assert result.exit_code == 1
    assert "cannot reach" in result.stderr
    assert address in result.stderr
    assert "hint:" in result.stderr


def test_server_that_never_answers_is_status_4(kctl: Kctl, silent_server: str) -> None:
    result = kctl("cluster", "-b", silent_server, "--timeout", "0.3")
    assert result.exit_code == 4
    assert "within 0.3 s" in result.stderr


@pytest.mark.parametrize("address", ["localhost:", "localhost:http", ":9092"])
def test_invalid_address_is_a_usage_error(kctl: Kctl, address: str) -> None:
    result = kctl("cluster", "-b", address)
    assert result.exit_code == 2
    assert "host:port" in result.stderr
