"""A simulated cluster: brokers that start, stop, crash and come back with their files."""

import asyncio
import logging
import random
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.config import load_config
from broker.server import Server, StartAborted
from broker.server.platform import Platform
from tests.simulation.disk import SimulatedDisk
from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.network import Network
from tests.simulation.zookeeper import ZooKeeperServer, opening

logger = logging.getLogger(__name__)

START_MS = 1_700_000_000_000
PORT = 9092
SETTINGS = {
    "zookeeper.connect": "zookeeper:2181",
    "zookeeper.session.timeout.ms": "6000",
    "zookeeper.connection.timeout.ms": "20000",
    "replica.lag.time.max.ms": "5000",
    "request.timeout.ms": "5000",
    "controller.socket.timeout.ms": "5000",
    "replica.socket.timeout.ms": "5000",
    "controlled.shutdown.retry.backoff.ms": "1000",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.max.timeout.ms": "60000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "group.initial.rebalance.delay.ms": "0",
    "leader.imbalance.check.interval.seconds": "20",
}


@dataclass
class SimulatedClock:
    """Virtual time; the wall clock of a machine may be set forward or back."""

    loop: SimulatedLoop
    jump_ms: int = 0

    def now_ms(self) -> int:
        """See Clock."""
        return START_MS + self.jump_ms + int(self.loop.time() * 1000)

    def monotonic(self) -> float:
        """See Clock."""
        return self.loop.time()


class SimulatedBroker:
    """A broker and its machine: the files and the clock outlive its processes."""

    def __init__(self, cluster: "SimulatedCluster", broker_id: int) -> None:
        self.id = broker_id
        self.name = f"broker-{broker_id}"
        self.clock = SimulatedClock(cluster.loop)
        self._cluster = cluster
        self.process: Process | None = None
        self.server: Server | None = None
        self.disk: SimulatedDisk | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has a process, starting and stopping ones included."""
        return self.process is not None and self.process.is_alive

    def start(self) -> None:
        """Start a new process on the files of the last one."""
        assert not self.is_running
        self.process = Process(self.name)
        rng = random.Random(self._cluster.rng.getrandbits(64))
        self.disk = SimulatedDisk(self.process, rng, keep_undo=self._cluster.syncs_every_record)
        self._cluster.spawn(self.process, self._live(self.process, self.disk))

    async def _live(self, process: Process, disk: SimulatedDisk) -> None:
        settings = SETTINGS | self._cluster.settings
        settings |= {
            "broker.id": str(self.id),
            "listeners": f"PLAINTEXT://{self.name}:{PORT}",
            "log.dirs": str(self._cluster.directory / self.name),
        }
        platform = Platform(
            clock=self.clock,
            fs=disk,
            open_store=opening(self._cluster.zookeeper),
            listen=self._cluster.network.listen,
        )
        self.server = server = Server(load_config(None, settings), platform)
        try:
            await server.start()
            await server.stopping.wait()
            await server.stop()
        except StartAborted:
            pass
        except Exception as error:  # noqa: BLE001  # as __main__: one line, and the process ends
            logger.warning("broker ended: %r", error)
        # A process ends from the outside: its own callbacks do not run after this one.
        self._cluster.loop.call_soon(process.crash, context=self._cluster.context)

    def stop(self) -> None:
        """SIGTERM: a controlled shutdown."""
        if self.is_running and self.server is not None:
            assert self.process is not None
            self._cluster.loop.call_soon(self.server.stopping.set, context=self.process.context)

    def crash(self, *, with_machine: bool = False) -> None:
        """kill -9; with the machine, what was not synced is lost too."""
        if self.process is not None and self.process.is_alive:
            self.process.crash()
            if with_machine and self.disk is not None:
                self.disk.lose_power()


class SimulatedCluster:
    """Brokers, their ZooKeeper and the network between them."""

    def __init__(
        self, loop: SimulatedLoop, rng: random.Random, directory: Path, num_brokers: int = 3
    ) -> None:
        self.loop = loop
        self.rng = rng
        self.directory = directory
        self.context = Process("simulation").context
        self.network = Network(random.Random(rng.getrandbits(64)))
        loop.connect = self.network.connect
        self.zookeeper = ZooKeeperServer(self.network, SimulatedClock(loop).now_ms)
        self.settings: dict[str, str] = {}
        self.syncs_every_record = False
        self.brokers = {number: SimulatedBroker(self, number) for number in _ids(num_brokers)}
        self._spawned: list[asyncio.Task[Any]] = []

    def start(self) -> None:
        """Start ZooKeeper and all brokers."""
        self.zookeeper.start()
        for broker in self.brokers.values():
            broker.start()

    def spawn(self, process: Process, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run a coroutine as part of a process."""
        task = self.loop.create_task(coroutine, context=process.context)
        self._spawned.append(task)
        return task

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers."""
        return ",".join(f"{broker.name}:{PORT}" for broker in self.brokers.values())

    def heal(self) -> None:
        """End every fault and start brokers that are down."""
        self.network.heal()
        if not self.zookeeper.is_available:
            self.zookeeper.recover()
        for broker in self.brokers.values():
            if broker.disk is not None:
                broker.disk.is_full = False
                broker.disk.max_stall_s = 0.0
            while broker.process is not None and broker.process.is_paused:
                broker.process.resume()
        self.restart_dead()

    def restart_dead(self) -> None:
        """Start brokers that have no process."""
        for broker in self.brokers.values():
            if not broker.is_running:
                broker.start()


def _ids(count: int) -> range:
    return range(1, count + 1)
