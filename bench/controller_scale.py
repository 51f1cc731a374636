"""A controller with 100 simulated brokers on a real ZooKeeper: ours and Apache Kafka's, in turns.

`bench.simulated_brokers` says what the brokers do. Two real brokers share the cluster and have no
partitions; one of them is the controller. Times end with the last request that the controller sends
because of the event. `KCTL_CONTROLLER_PARTITIONS` (with 3 replicas each), `KCTL_CONTROLLER_BROKERS`
and `KCTL_CONTROLLER_ROLLED` (brokers that are restarted one after the other) change the size,
`KCTL_CONTROLLER_ONLY=ours` leaves Kafka out, for sizes that it does not manage.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from bench.report import Comparison
from bench.servers import MeasuredBroker
from bench.simulated_brokers import SimulatedBrokers, controller_address
from broker.metadata.znodes.topics import (
    PartitionStateZnode,
    ReplicaAssignment,
    TopicZnode,
    partition_path,
    partitions_path,
)
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from tests.support.broker import STARTED
from tests.support.processes import ServerProcess
from tests.support.real_kafka import joined_kafka
from tests.support.zookeeper import running_zookeeper

NUM_PARTITIONS = int(os.environ.get("KCTL_CONTROLLER_PARTITIONS", "20000"))
NUM_BROKERS = int(os.environ.get("KCTL_CONTROLLER_BROKERS", "100"))
NUM_ROLLED = int(os.environ.get("KCTL_CONTROLLER_ROLLED", "10"))
ONLY = os.environ.get("KCTL_CONTROLLER_ONLY", "")
PER_TOPIC: Final = 100
REPLICAS: Final = 3
REAL: Final = (901, 902)
QUIET_S: Final = 3.0
PATIENCE_S: Final = 1200.0
_IN_FLIGHT: Final = 2000
SETTINGS: Final[dict[str, object]] = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "zookeeper.session.timeout.ms": 30_000,
    "zookeeper.connection.timeout.ms": 60_000,
}


@dataclass
class Seen:
    """What one controller took."""

    load_s: float = 0.0
    """From the start of the first broker until all simulated ones know everything."""
    elect_s: float = 0.0
    rejoin_s: float = 0.0
    altered_per_s: float = 0.0
    roll_s: float = 0.0
    """Per broker, from its controlled shutdown until it is in all ISRs again."""
    move_s: float = 0.0
    requests_per_s: float = 0.0
    """Requests answered by the simulated brokers while the controllership moves."""
    memory_mb: float = 0.0
    cpu_s: float = 0.0


def run() -> Iterator[Comparison]:
    """Every row for both controllers."""
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory:
        ours = _measure(Path(directory, "ours"), is_ours=True)
        theirs = ours if ONLY == "ours" else _measure(Path(directory, "theirs"), is_ours=False)
    size = f"{NUM_BROKERS} brokers, {NUM_PARTITIONS:,} partitions"
    peer = "itself" if ONLY == "ours" else "Kafka"
    for name, mine, other, unit in (
        (f"start of the controller, {size}", ours.load_s, theirs.load_s, "s"),
        ("new leaders after a broker died", ours.elect_s, theirs.elect_s, "s"),
        ("dead broker back in all ISRs", ours.rejoin_s, theirs.rejoin_s, "s"),
        ("restart of a broker, in a roll", ours.roll_s, theirs.roll_s, "s"),
        ("move to a new controller", ours.move_s, theirs.move_s, "s"),
        ("controller CPU, all of the above", ours.cpu_s, theirs.cpu_s, "s"),
        ("controller memory", ours.memory_mb, theirs.memory_mb, "MB"),
    ):
        yield Comparison(name, mine, other, peer, unit)
    for name, mine, other, unit in (
        ("ISR changes", ours.altered_per_s, theirs.altered_per_s, "partitions/s"),
        ("requests in a move", ours.requests_per_s, theirs.requests_per_s, "req/s"),
    ):
        yield Comparison(name, mine, other, peer, unit, more_is_better=True)


def _measure(directory: Path, *, is_ours: bool) -> Seen:
    directory.mkdir()
    (directory / "zookeeper").mkdir()
    with running_zookeeper(directory / "zookeeper") as zookeeper:
        zookeeper.children("/")  # it answers; a client with a long timeout would wait as long
        client = KazooClient(zookeeper.address, timeout=60)
        client.start(timeout=30)
        try:
            _fill(client)
            with ExitStack() as stack:
                cluster = _Cluster(directory, zookeeper.address, client, stack, is_ours=is_ours)
                return asyncio.run(cluster.measure())
        finally:
            client.stop()
            client.close()


def _fill(client: KazooClient) -> None:
    """Write the topics and the state of all partitions, as a controller has left them."""
    client.ensure_path("/brokers/ids")
    client.ensure_path("/brokers/topics")
    state = LeaderAndIsr(0, 0, (), ())
    for kind in range(3):  # parents first
        waiting = []
        for first in range(0, NUM_PARTITIONS, PER_TOPIC):
            topic = f"topic-{first // PER_TOPIC:05}"
            assignment = {i: ReplicaAssignment(_replicas(first + i)) for i in range(PER_TOPIC)}
            if kind == 0:
                znode = TopicZnode(topic, Uuid.random(), assignment)
                waiting.append(client.create_async(znode.path(topic), znode.encode()))
            elif kind == 1:
                waiting.append(client.create_async(partitions_path(topic), b""))
            for index in range(PER_TOPIC) if kind == 2 else ():
                name, replicas = TopicPartition(topic, index), assignment[index].replicas
                waiting.append(client.create_async(partition_path(name), b""))
                state = LeaderAndIsr(replicas[0], 0, replicas, replicas)
                data = _state(state)
                waiting.append(client.create_async(PartitionStateZnode.path(name), data))
                if len(waiting) >= _IN_FLIGHT:
                    for one in waiting:
                        one.get()
                    waiting = []
        for one in waiting:
            one.get()


def _state(state: LeaderAndIsr) -> bytes:
    return PartitionStateZnode(
        leader=state.leader,
        leader_epoch=0,
        isr=state.isr,
        controller_epoch=1,
    ).encode()


def _replicas(number: int) -> tuple[int, ...]:
    """Spread evenly: the leaders round-robin, the followers at changing distances."""
    distance = 1 + number // NUM_BROKERS % (NUM_BROKERS // REPLICAS)
    return tuple(1 + (number + step * distance) % NUM_BROKERS for step in range(REPLICAS))


class _Cluster:
    """The real and the simulated brokers of one measurement."""

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        client: KazooClient,
        stack: ExitStack,
        *,
        is_ours: bool,
    ) -> None:
        self._directory = directory
        self._zookeeper = zookeeper
        self._client = client
        self._stack = stack
        self._is_ours = is_ours
        self._simulated = SimulatedBrokers(client, NUM_BROKERS)
        self._real: dict[int, MeasuredBroker] = {}

    async def measure(self) -> Seen:
        """All scenarios, one after the other."""
        seen, simulated = Seen(), self._simulated
        await simulated.start()
        since = time.monotonic()
        await self._start(REAL[0])
        seen.load_s = await self._quiet(lambda: len(simulated.states) == NUM_PARTITIONS) - since
        await self._start(REAL[1])
        await self._quiet()

        since = time.monotonic()
        await simulated.unregister(1)
        seen.elect_s = await self._quiet(lambda: not simulated.num_led_by(1)) - since

        altered, since = simulated.counts.altered_partitions, time.monotonic()
        await simulated.register(1)
        seen.rejoin_s = await self._quiet(simulated.are_in_sync) - since
        seen.altered_per_s = (simulated.counts.altered_partitions - altered) / seen.rejoin_s

        for broker_id in range(2, 2 + NUM_ROLLED):
            since = time.monotonic()
            await simulated.shut_down(broker_id)
            await simulated.unregister(broker_id)
            await simulated.register(broker_id)
            seen.roll_s += (await self._quiet(simulated.are_in_sync) - since) / NUM_ROLLED

        requests, since = simulated.counts.requests, time.monotonic()
        await asyncio.to_thread(self._client.delete, "/controller")
        at_least = requests + 2 * NUM_BROKERS
        seen.move_s = await self._quiet(lambda: simulated.counts.requests >= at_least) - since
        seen.requests_per_s = (simulated.counts.requests - requests) / seen.move_s
        address = await asyncio.to_thread(controller_address, self._client)
        controller = self._real[address.node_id]
        seen.memory_mb = controller.resident_mb()
        seen.cpu_s = sum(broker.cpu_seconds() for broker in self._real.values())
        return seen

    async def _quiet(self, condition: Callable[[], bool] = lambda: True) -> float:
        """Wait for the condition and the end of requests; returns when the last one came."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.sleep(QUIET_S)
            while True:
                last_s = await self._simulated.until_quiet(QUIET_S)
                if condition():
                    return last_s

    async def _start(self, broker_id: int) -> None:
        """Start a real broker in a thread, because the simulated ones must answer it meanwhile."""
        address, pid = await asyncio.to_thread(self._enter, broker_id)
        self._real[broker_id] = MeasuredBroker(address, pid)

    def _enter(self, broker_id: int) -> tuple[str, int]:
        directory = self._directory / str(broker_id)
        directory.mkdir()
        return self._stack.enter_context(self._running(directory, broker_id))

    def _running(self, directory: Path, broker_id: int) -> AbstractContextManager[tuple[str, int]]:
        return (_ours if self._is_ours else _kafkas)(directory, self._zookeeper, broker_id)


@contextmanager
def _ours(directory: Path, zookeeper: str, broker_id: int) -> Iterator[tuple[str, int]]:
    own = {
        "broker.id": broker_id,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": directory / "data",
        "zookeeper.connect": zookeeper,
    }
    overrides = [f"--override={key}={value}" for key, value in (own | SETTINGS).items()]
    command = [sys.executable, "-m", "broker", *overrides]
    with ServerProcess(command, directory / "broker.log") as server:
        # With many partitions a controller does not answer before it has loaded them.
        yield server.wait_for_line(STARTED, PATIENCE_S)[1], server.process.pid


@contextmanager
def _kafkas(directory: Path, zookeeper: str, broker_id: int) -> Iterator[tuple[str, int]]:
    with joined_kafka(directory, zookeeper, broker_id, SETTINGS) as address:
        wanted = str(directory / f"server-{broker_id}.properties").encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and wanted in _command_of(entry):
                yield address, int(entry.name)
                return


def _command_of(entry: Path) -> list[bytes]:
    try:
        return (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:  # it has just ended
        return []
