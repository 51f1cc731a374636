"""Three of our brokers and three of Apache Kafka on one ZooKeeper, for a benchmark."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.client import KazooClient

from bench.servers import MeasuredBroker
from broker.net.client import Client
from broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.processes import ServerProcess, free_port
from tests.support.real_kafka import java_command
from tests.support.zookeeper import ZooKeeper, running_zookeeper

BROKERS = (1, 2, 3)
SESSION_TIMEOUT_MS = 6000
SETTINGS: dict[str, object] = {
    "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
    "offsets.topic.replication.factor": 3,
    "auto.leader.rebalance.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
}
POLL_S = 0.01
PATIENCE_S = 120


Command = Callable[[Path, Mapping[str, object]], list[str]]
"""Builds the command line of a broker with the given directory and settings."""


def our_command(_directory: Path, settings: Mapping[str, object]) -> list[str]:
    """Command line of our broker."""
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    return [sys.executable, "-m", "broker", *overrides]


def kafka_command(directory: Path, settings: Mapping[str, object]) -> list[str]:
    """Command line of Apache Kafka."""
    config = directory / "server.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return java_command("kafka.Kafka", str(config), heap="1g")


@dataclass
class MeasuredCluster:
    """Brokers by id; a killed broker can be started again."""

    name: str
    directory: Path
    server: ZooKeeper
    zookeeper: str
    """Connect string, with this cluster's own chroot."""
    command: Command
    ports: dict[int, int] = field(default_factory=lambda: {i: free_port() for i in BROKERS})
    servers: dict[int, ServerProcess] = field(default_factory=dict)

    def addresses(self, *without: int) -> str:
        """Bootstrap servers: all brokers except `without`."""
        return ",".join(
            f"127.0.0.1:{port}"
            for broker_id, port in self.ports.items()
            if broker_id not in without
        )

    def start(self, *broker_ids: int) -> None:
        """Start brokers; they listen when this returns but may not be registered yet."""
        for broker_id in broker_ids:
            home = self.directory / str(broker_id)
            home.mkdir(parents=True, exist_ok=True)
            own = {
                "broker.id": broker_id,
                "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[broker_id]}",
                "log.dirs": home / "data",
                "zookeeper.connect": self.zookeeper,
            }
            command = self.command(home, own | SETTINGS)
            self.servers[broker_id] = ServerProcess(command, home / "broker.log")
        for broker_id in broker_ids:
            self.servers[broker_id].wait_for_port(self.ports[broker_id], PATIENCE_S)

    def kill(self, broker_id: int) -> None:
        """Crash a broker with kill -9."""
        process = self.servers.pop(broker_id).process
        process.kill()
        process.wait()

    def stop(self, broker_id: int) -> None:
        """Stop a broker cleanly: it hands over its leaderships first."""
        self.servers.pop(broker_id).stop()

    def kill_noticed(self, broker_id: int) -> None:
        """Kill a broker and expire its session, so that the controller notices at once."""
        tree = KazooClient(self.zookeeper)
        tree.start()
        session_id = tree.exists(f"/brokers/ids/{broker_id}").ephemeralOwner
        tree.stop()
        tree.close()
        self.kill(broker_id)
        self.server.expire_session(session_id)

    def close(self) -> None:
        """Kill every broker."""
        for broker_id in list(self.servers):
            self.kill(broker_id)

    def measured(self) -> list[MeasuredBroker]:
        """Every running broker, for reading its CPU time and memory."""
        return [
            MeasuredBroker(f"127.0.0.1:{self.ports[broker_id]}", server.process.pid)
            for broker_id, server in self.servers.items()
        ]

    def cpu_seconds(self) -> float:
        """User and system time of all brokers so far."""
        return sum(broker.cpu_seconds() for broker in self.measured())


@contextmanager
def both_clusters() -> Iterator[tuple[MeasuredCluster, MeasuredCluster]]:
    """Our cluster and Kafka's: same settings, same disk, own chroots in one ZooKeeper."""
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory:
        home = Path(directory, "zookeeper")
        home.mkdir()
        with running_zookeeper(home) as zookeeper:
            clusters = [
                MeasuredCluster(
                    name, Path(directory, name), zookeeper, zookeeper.fresh_chroot(), command
                )
                for name, command in (("ours", our_command), ("Kafka", kafka_command))
            ]
            try:
                for cluster in clusters:
                    cluster.start(*BROKERS)
                    asyncio.run(_until_all_registered(cluster))
                yield clusters[0], clusters[1]
            finally:
                for cluster in clusters:
                    cluster.close()


async def _until_all_registered(cluster: MeasuredCluster) -> None:
    deadline = time.monotonic() + PATIENCE_S
    async with Client(cluster.addresses()) as client:
        while len((await client.refresh_metadata()).brokers) < len(BROKERS):
            assert time.monotonic() < deadline, f"{cluster.name}: not all brokers registered"
            await asyncio.sleep(POLL_S)


async def create_topic(
    cluster: MeasuredCluster, topic: str, partitions: int, replicas: list[int]
) -> None:
    """Create a topic whose partitions all have these replicas, and wait for full ISRs."""
    wanted = CreatableTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index in range(partitions)
        ],
    )
    async with Client(cluster.addresses(), request_timeout_s=PATIENCE_S) as client:
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=PATIENCE_S * 1000)
        (made,) = (await client.send_to_controller(request)).topics
        assert made.error_code in (0, 36), made.error_message
    await until_led(cluster, topic, {replicas[0]}, in_sync=len(replicas))


async def delete_topic(cluster: MeasuredCluster, topic: str) -> None:
    """Delete a topic; the brokers remove its files a minute later."""
    async with Client(cluster.addresses(), request_timeout_s=PATIENCE_S) as client:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=topic)],
            topic_names=[topic],
            timeout_ms=PATIENCE_S * 1000,
        )
        (deleted,) = (await client.send_to_controller(request)).responses
        assert not deleted.error_code, deleted.error_message


async def until_led(
    cluster: MeasuredCluster,
    topic: str,
    leaders: set[int],
    *,
    without: tuple[int, ...] = (),
    in_sync: int = 1,
) -> float:
    """Wait until every partition is led by one of `leaders`; return time.monotonic() then.

    Any broker except `without` may report it: the first one that knows counts.
    """
    deadline = time.monotonic() + PATIENCE_S
    async with Client(cluster.addresses(*without)) as client:
        while True:
            (described,) = (await client.refresh_metadata([topic])).topics
            if described.partitions and all(
                p.leader_id in leaders and len(p.isr_nodes) >= in_sync for p in described.partitions
            ):
                return time.monotonic()
            assert time.monotonic() < deadline, f"{cluster.name}: no leader in {leaders}"
            await asyncio.sleep(POLL_S)
