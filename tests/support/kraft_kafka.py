"""A real Apache Kafka 4.1.1 in KRaft mode and its tools: the oracle for everything after 3.9.

Each node is broker and controller. Share groups are enabled (`share.version=1`), because 4.1 has
them switched off by default. As in `real_kafka`, jars come from Maven the first time, ports are
free ones, and every process is ended by its id.
"""

import asyncio
import base64
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest
from kctl.java import find_java
from tests.support.processes import ServerProcess, free_port

VERSION = "4.1.1"
_PATIENCE_S = 90
CACHE = Path.home() / ".cache" / "real-kafka" / VERSION
POM = Path(__file__).with_name("kraft-pom.xml")
LOG4J2 = """\
Configuration:
  Appenders:
    Console:
      name: err
      target: SYSTEM_ERR
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
  Loggers:
    Root:
      level: WARN
      AppenderRef:
        - ref: err
"""


@dataclass(frozen=True)
class KraftNode:
    """One node: broker and controller; a broker alone has no controller port."""

    id: int
    port: int
    controller_port: int
    directory_id: str

    @property
    def voter(self) -> str:
        """The node as `kafka-storage --initial-controllers` takes it."""
        return f"{self.id}@127.0.0.1:{self.controller_port}:{self.directory_id}"


@dataclass(frozen=True)
class KraftKafka:
    """A running cluster."""

    directory: Path
    cluster_id: str
    nodes: tuple[KraftNode, ...]

    @property
    def brokers(self) -> tuple[str, ...]:
        """The addresses of the brokers, by their ids from 1 on."""
        return tuple(f"127.0.0.1:{node.port}" for node in self.nodes)

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, as clients take them."""
        return ",".join(self.brokers)

    def tool(
        self, main_class: str, *args: str, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own tools, with `text` on its standard input."""
        command = kraft_command(main_class, *args, heap="128m")
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)

    def started(self, main_class: str, *args: str) -> ServerProcess:
        """A client of Kafka's jars that runs until the context ends, such as a console consumer."""
        log_file = self.directory / f"{main_class.rpartition('.')[2]}-{free_port()}.log"
        return ServerProcess(kraft_command(main_class, *args, heap="128m"), log_file)

    @contextmanager
    def another_broker(self, broker_id: int) -> Iterator[ServerProcess]:
        """A broker that is no controller, beside the nodes; yielded when it is registered."""
        node = KraftNode(broker_id, free_port(), 0, "")
        config = _write_config(self, node, {})
        _format(self, config, is_voter=False)
        command = kraft_command("kafka.Kafka", str(config), heap="512m")
        with ServerProcess(command, self.directory / f"broker-{broker_id}.log") as server:
            asyncio.run(_until_registered(self, len(self.nodes) + 1))
            yield server


@contextmanager
def running_kraft(
    directory: Path, nodes: int = 1, settings: Mapping[str, object] | None = None
) -> Iterator[KraftKafka]:
    """Format and start `nodes` nodes with their data under `directory`."""
    ids = range(1, nodes + 1)
    voters = tuple(KraftNode(one, free_port(), free_port(), _random_uuid()) for one in ids)
    cluster = KraftKafka(directory, _random_uuid(), voters)
    with ExitStack() as servers:
        for node in voters:
            config = _write_config(cluster, node, dict(settings or {}))
            _format(cluster, config)
            command = kraft_command("kafka.Kafka", str(config), heap="512m")
            servers.enter_context(ServerProcess(command, directory / f"broker-{node.id}.log"))
        asyncio.run(_until_registered(cluster, nodes))
        yield cluster


def kraft_command(main_class: str, *args: str, heap: str) -> list[str]:
    """The command line that runs a class of Kafka's jars."""
    return [
        str(find_java().executable),
        f"-Xmx{heap}",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={CACHE}/log4j2.yaml",
        "-cp",
        f"{_jars()}/*",
        main_class,
        *args,
    ]


def _jars() -> Path:
    if not (CACHE / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        shutil.copy(POM, CACHE / "pom.xml")
        copy = ["mvn", "-q", "dependency:copy-dependencies", "-DoutputDirectory=libs"]
        subprocess.run(copy, cwd=CACHE, check=True)
        (CACHE / "log4j2.yaml").write_text(LOG4J2)
        (CACHE / "complete").touch()
    return CACHE / "libs"


def _write_config(cluster: KraftKafka, node: KraftNode, settings: Mapping[str, object]) -> Path:
    replicas = min(3, len(cluster.nodes))
    controllers = (f"127.0.0.1:{one.controller_port}" for one in cluster.nodes)
    listeners = [f"PLAINTEXT://127.0.0.1:{node.port}"]
    if node.controller_port:
        listeners.append(f"CONTROLLER://127.0.0.1:{node.controller_port}")
    own: dict[str, object] = {
        "process.roles": "broker,controller" if node.controller_port else "broker",
        "node.id": node.id,
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(controllers),
        "log.dirs": cluster.directory / f"data-{node.id}",
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": 5,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.num.partitions": 5,
        "transaction.state.log.min.isr": max(1, replicas - 1),
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.num.partitions": 5,
        "share.coordinator.state.topic.min.isr": max(1, replicas - 1),
        "group.initial.rebalance.delay.ms": 0,
        **settings,
    }
    config = cluster.directory / f"server-{node.id}.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in own.items()))
    return config


def _format(cluster: KraftKafka, config: Path, *, is_voter: bool = True) -> None:
    voters = ",".join(node.voter for node in cluster.nodes)
    args = ["format", "--cluster-id", cluster.cluster_id, "--config", str(config)]
    args += ["--feature", "share.version=1"]
    args += ["--initial-controllers", voters] if is_voter else ["--no-initial-controllers"]
    done = cluster.tool("kafka.tools.StorageTool", *args)
    if done.returncode:
        raise RuntimeError(f"kafka-storage format failed: {done.stdout}{done.stderr}")


async def _until_registered(cluster: KraftKafka, brokers: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            async with Client(cluster.brokers) as client:
                answer = await client.send(MetadataRequest(topics=[]))
                if len(answer.brokers) == brokers:
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all brokers registered within {_PATIENCE_S} s")
        await asyncio.sleep(0.2)


def _random_uuid() -> str:
    """A UUID in Kafka's form, without a leading dash: tools take it for an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22])[0] == "-":
        pass
    return text
