"""A cluster of ours for tests: a broker per process, on a real ZooKeeper."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.support.broker import STARTED
from tests.support.processes import POLL_S, ServerProcess, free_port
from tests.support.real_kafka import java_command

SESSION_TIMEOUT_MS = 3000
START_TIMEOUT_S = 120
QUICK = {
    "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
    "zookeeper.connection.timeout.ms": 20_000,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "controlled.shutdown.retry.backoff.ms": 200,
}
"""Settings for fast tests: short session timeouts, internal topics with few partitions."""

T = TypeVar("T")
Wrap = Callable[[int, list[str]], list[str]]
"""Changes the command that starts the broker of an id."""


def wait_until(
    condition: Callable[[], T | Literal[False] | None], wish: str, timeout_s: float = 20
) -> T:
    """The first true value of `condition`; AssertionError with `wish` after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {wish}"
        time.sleep(POLL_S)
    return value


@dataclass
class Cluster:
    """Brokers by id. Each keeps its port and its directory from one start to the next."""

    directory: Path
    zookeeper: str
    """The connect string, with a chroot of the cluster's own."""
    settings: dict[str, object]
    tree: KazooClient
    """A client of the znodes, to read and to change them."""
    servers: dict[int, ServerProcess] = field(default_factory=dict)
    """Those that run, paused ones included."""
    ports: dict[int, int] = field(default_factory=dict)
    hosts: Mapping[int, str] = field(default_factory=dict)
    """Addresses of brokers that do not listen on 127.0.0.1."""
    wrap: Wrap = lambda _broker_id, command: command
    """Changes the command that starts a broker."""
    apache: frozenset[int] = frozenset()
    """Brokers that are Apache Kafka instead of ours."""
    _starts: int = 0

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers that were ever started."""
        return ",".join(self.address(broker_id) for broker_id in self.ports)

    def address(self, broker_id: int) -> str:
        """Where a broker listens when it runs."""
        return f"{self.hosts.get(broker_id, '127.0.0.1')}:{self.ports[broker_id]}"

    def log_dir(self, broker_id: int) -> Path:
        """Where a broker keeps its partitions."""
        return self.directory / f"data-{broker_id}"

    # brokers

    def launch(self, broker_id: int, settings: Mapping[str, object] | None = None) -> ServerProcess:
        """Start a broker without waiting for it."""
        if broker_id not in self.ports:
            self.ports[broker_id] = free_port()
        own: dict[str, object] = {
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://{self.address(broker_id)}",
            "log.dirs": self.log_dir(broker_id),
            "zookeeper.connect": self.zookeeper,
        }
        wanted = own | self.settings | dict(settings or {})
        self._starts += 1
        command = self._command(broker_id, wanted)
        log_file = self.directory / f"broker-{broker_id}.{self._starts}.log"
        self.servers[broker_id] = ServerProcess(self.wrap(broker_id, command), log_file)
        return self.servers[broker_id]

    def _command(self, broker_id: int, settings: Mapping[str, object]) -> list[str]:
        if broker_id in self.apache:
            config = self.directory / f"server-{broker_id}.properties"
            config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            return java_command("kafka.Kafka", str(config), heap="1g")
        overrides = [f"--override={key}={value}" for key, value in settings.items()]
        return [sys.executable, "-m", "broker", *overrides]

    def start(self, *broker_ids: int, settings: Mapping[str, object] | None = None) -> None:
        """Start brokers, and return when they answer."""
        servers = {broker_id: self.launch(broker_id, settings) for broker_id in broker_ids}
        for broker_id, server in servers.items():
            if broker_id in self.apache:
                server.wait_for_port(self.ports[broker_id], START_TIMEOUT_S)
            else:
                server.wait_for_line(STARTED, START_TIMEOUT_S)

    def stop(self, broker_id: int) -> int:
        """Stop a broker cleanly; gives its exit status."""
        return self.servers.pop(broker_id).stop()

    def kill(self, broker_id: int) -> None:
        """End a broker as a crash would: kill -9."""
        process = self.servers.pop(broker_id).process
        process.kill()
        process.wait()

    def restart(self, broker_id: int, settings: Mapping[str, object] | None = None) -> None:
        """Stop a broker cleanly, and start it again."""
        self.stop(broker_id)
        self.start(broker_id, settings=settings)

    @contextmanager
    def paused(self, broker_id: int) -> Iterator[None]:
        """Stop a broker with SIGSTOP, as a long garbage collection or a suspended machine would."""
        pid = self.servers[broker_id].process.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def output(self, broker_id: int) -> str:
        """What a running broker has logged so far."""
        return self.servers[broker_id].log_file.read_text()

    def close(self) -> None:
        """End every broker."""
        for server in self.servers.values():
            server.process.kill()
            server.process.wait()
        self.servers.clear()

    # the tree

    def znode(self, path: str) -> Any:
        """The JSON of a node; None where there is no node."""
        try:
            data, _ = self.tree.get(path)
        except NoNodeError:
            return None
        return json.loads(data) if data else {}

    def live_brokers(self) -> list[int]:
        """The ids of registered brokers."""
        return sorted(map(int, self.tree.get_children("/brokers/ids")))

    def controller_id(self) -> int | None:
        """The id of the controller; None if there is no controller."""
        node = self.znode("/controller")
        return None if node is None else int(node["brokerid"])

    def partition_state(self, topic: str, partition: int = 0) -> dict[str, Any]:
        """Leader, ISR and epochs of a partition as stored in ZooKeeper; empty if not stored."""
        return self.znode(f"/brokers/topics/{topic}/partitions/{partition}/state") or {}

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The id of the leader, or None."""
        leader = self.partition_state(topic, partition).get("leader", -1)
        return None if leader < 0 else int(leader)

    def isr(self, topic: str, partition: int = 0) -> list[int]:
        """The ISR."""
        return list(self.partition_state(topic, partition).get("isr", []))


@contextmanager
def running_cluster(
    directory: Path,
    zookeeper: str,
    brokers: int = 3,
    settings: Mapping[str, object] | None = None,
    hosts: Mapping[int, str] | None = None,
    wrap: Wrap | None = None,
    apache: frozenset[int] = frozenset(),
    before_start: Callable[[Cluster], None] = lambda _cluster: None,
) -> Iterator[Cluster]:
    """Brokers 1 to `brokers` on a ZooKeeper that runs already; ended with the block."""
    tree = KazooClient(zookeeper)
    tree.start(timeout=20)
    cluster = Cluster(directory, zookeeper, QUICK | dict(settings or {}), tree)
    cluster.hosts, cluster.apache = hosts or {}, apache
    cluster.wrap = wrap or cluster.wrap
    try:
        before_start(cluster)
        cluster.start(*range(1, brokers + 1))
        yield cluster
    finally:
        cluster.close()
        tree.stop()
        tree.close()
