"""A real Apache Kafka 3.9.1 (ZooKeeper mode) and its tools: the oracle of the `kafka` tests.

The jars come from Maven the first time, which takes a few minutes, and stay in the user's cache.
Ports are free ones, data lives where the caller says, and every process is ended by its id.
"""

import asyncio
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest
from kctl.dev.apache_kafka import kafka_command, kafka_home
from tests.support.processes import ServerProcess, free_port

_PATIENCE_S = 60
CACHE = kafka_home()
ZOO_CFG = """\
tickTime=2000
dataDir={directory}/zookeeper
clientPort={port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
"""


@dataclass(frozen=True)
class RealKafka:
    """A running cluster."""

    directory: Path
    zookeeper: str
    brokers: tuple[str, ...]

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, as clients take them."""
        return ",".join(self.brokers)

    def log_dir(self, broker_id: int) -> Path:
        """Where a broker (from 1) keeps its data."""
        return self.directory / f"data-{broker_id}"

    def tool(self, main_class: str, *args: str) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own tools, e.g. `org.apache.kafka.tools.TopicCommand`."""
        return self.tool_with_input(main_class, *args)

    def tool_with_input(
        self, main_class: str, *args: str, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """As `tool`, with `text` on its standard input."""
        command = java_command(main_class, *args)
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)


@contextmanager
def running_kafka(
    directory: Path, brokers: int = 1, settings: Mapping[str, object] | None = None
) -> Iterator[RealKafka]:
    """Start ZooKeeper and `brokers` brokers with their data under `directory`.

    `more.listeners` among the settings (`SSL://127.0.0.1:1234`) are added to the plaintext one;
    `jmx.port` opens a JMX port, of a single broker.
    """
    with ExitStack() as servers:
        zookeeper = f"127.0.0.1:{_start_zookeeper(servers, directory)}"
        ids = range(1, brokers + 1)
        base = _settings(zookeeper, min(3, brokers)) | dict(settings or {})
        ports = [_start_broker(servers, directory, broker_id, base) for broker_id in ids]
        for port in ports:
            asyncio.run(_until_it_names_a_controller(port))
        yield RealKafka(directory, zookeeper, tuple(f"127.0.0.1:{port}" for port in ports))


@contextmanager
def joined_kafka(
    directory: Path, zookeeper: str, broker_id: int, settings: Mapping[str, object] | None = None
) -> Iterator[str]:
    """One broker in a cluster that runs already; gives its address, and is stopped cleanly."""
    with ExitStack() as servers:
        wanted = _settings(zookeeper, 3) | dict(settings or {})
        yield f"127.0.0.1:{_start_broker(servers, directory, broker_id, wanted)}"


def java_command(main_class: str, *args: str, heap: str = "512m") -> list[str]:
    """The command line that runs a class of Kafka's jars."""
    return kafka_command(main_class, *args, heap=heap)


def _start_zookeeper(servers: ExitStack, directory: Path) -> int:
    port = free_port()
    config = directory / "zoo.cfg"
    config.write_text(ZOO_CFG.format(directory=directory, port=port))
    main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    command = java_command(main_class, str(config), heap="256m")
    servers.enter_context(ServerProcess(command, directory / "zookeeper.log")).wait_for_port(port)
    return port


def _start_broker(
    servers: ExitStack, directory: Path, broker_id: int, settings: dict[str, object]
) -> int:
    port = free_port()
    settings = dict(settings)
    jmx_port = settings.pop("jmx.port", None)
    listeners = [f"PLAINTEXT://127.0.0.1:{port}", *str(settings.pop("more.listeners", "")).split()]
    own = {
        "broker.id": broker_id,
        "listeners": ",".join(listeners),
        "log.dirs": directory / f"data-{broker_id}",
    }
    config = directory / f"server-{broker_id}.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in (own | settings).items()))
    command = java_command("kafka.Kafka", str(config), heap="1g")
    if jmx_port is not None:
        jmx = "-Dcom.sun.management.jmxremote"
        no_security = (f"{jmx}.authenticate=false", f"{jmx}.ssl=false", f"{jmx}.host=127.0.0.1")
        command[1:1] = [f"{jmx}.port={jmx_port}", *no_security]
    log_file = directory / f"broker-{broker_id}.log"
    servers.enter_context(ServerProcess(command, log_file)).wait_for_port(port)
    return port


async def _until_it_names_a_controller(port: int) -> None:
    """Wait for the controller: librdkafka retries a missing one only after minutes."""
    deadline = time.monotonic() + _PATIENCE_S
    async with Client(f"127.0.0.1:{port}") as client:
        while (await client.send(MetadataRequest(topics=[]))).controller_id < 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no controller within {_PATIENCE_S} s")
            await asyncio.sleep(0.05)


def _settings(zookeeper: str, replicas: int) -> dict[str, object]:
    return {
        "zookeeper.connect": zookeeper,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": max(1, replicas - 1),
        "group.initial.rebalance.delay.ms": 0,
    }
