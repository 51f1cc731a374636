"""What goes wrong in a simulated cluster, chosen by the seed.

Each fault has a beginning and, after a while, an end of its own; several may overlap. At most one
broker at a time is down, paused or has a broken disk, so that every partition keeps a majority of
its replicas, while the network and ZooKeeper may fail in any way. `SimulatedCluster.heal` ends all.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.cluster import SimulatedBroker, SimulatedCluster

logger = logging.getLogger(__name__)


@dataclass
class Faults:
    """Injects faults into a cluster."""

    cluster: SimulatedCluster
    rng: random.Random

    def __post_init__(self) -> None:
        self.is_over = False
        self._disturbed: SimulatedBroker | None = None
        """The broker that is down, paused or out of disk."""

    async def run(self, seconds: float) -> None:
        """Inject faults for `seconds` of virtual time, then end all of them."""
        end_s = self.cluster.loop.time() + seconds
        while self.cluster.loop.time() < end_s:
            await asyncio.sleep(self.rng.uniform(0.2, 5.0))
            fault = self.rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
            getattr(self, fault)()
        self.is_over = True
        logger.info("end of faults")
        self.cluster.heal()

    # --- brokers ---------------------------------------------------------------------------------

    def _disturb(self) -> SimulatedBroker | None:
        """A broker to break, unless one is broken already."""
        if self._disturbed is not None:
            return None
        self._disturbed = self.rng.choice(list(self.cluster.brokers.values()))
        return self._disturbed

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        def act() -> None:
            if not self.is_over:
                action()

        self.cluster.loop.call_later(seconds, act)

    def _restart(self, broker: SimulatedBroker) -> None:
        if not broker.is_running:
            logger.info("start %s", broker.name)
            broker.start()
            self._disturbed = None
        else:  # a controlled shutdown takes its time
            self._later(0.5, lambda: self._restart(broker))

    def crash(self) -> None:
        """kill -9, and a new process after a moment or after its session has expired."""
        if (broker := self._disturb()) is not None:
            with_machine = self.cluster.syncs_every_record and self.rng.random() < 0.5
            logger.info("crash %s with_machine=%s", broker.name, with_machine)
            broker.crash(with_machine=with_machine)
            self._later(self.rng.choice([0.1, 1.0, 8.0, 15.0]), lambda: self._restart(broker))

    def stop(self) -> None:
        """A clean stop and start."""
        if (broker := self._disturb()) is not None:
            logger.info("stop %s", broker.name)
            broker.stop()
            self._later(self.rng.uniform(0.5, 10.0), lambda: self._restart(broker))

    def pause(self) -> None:
        """SIGSTOP for less or more than a session, or than replica.lag.time.max.ms."""
        if (broker := self._disturb()) is None:
            return
        process = broker.process
        if process is None or not process.is_alive:
            self._disturbed = None
            return
        logger.info("pause %s", broker.name)
        process.pause()

        def resume() -> None:
            logger.info("resume %s", broker.name)
            self._disturbed = None
            if process.is_alive and process.is_paused:
                process.resume()

        self._later(self.rng.choice([0.5, 3.0, 5.2, 7.0, 12.0]), resume)

    def fill_disk(self) -> None:
        """No space left: the log directory goes offline, which ends a broker that has only one."""
        if (broker := self._disturb()) is None:
            return
        if not broker.is_running or broker.disk is None:
            self._disturbed = None
            return
        logger.info("full disk %s", broker.name)
        broker.disk.is_full = True

        def make_room() -> None:
            if broker.disk is not None:
                broker.disk.is_full = False
            broker.crash()  # if it has not ended by itself
            self._restart(broker)

        self._later(self.rng.uniform(1.0, 10.0), make_room)

    def slow_disk(self) -> None:
        """Every write stalls the broker."""
        broker = self.rng.choice(list(self.cluster.brokers.values()))
        disk = broker.disk
        if disk is None:
            return
        logger.info("slow disk %s", broker.name)
        disk.max_stall_s = self.rng.choice([0.05, 0.5])

        def end() -> None:
            disk.max_stall_s = 0.0

        self._later(self.rng.uniform(1.0, 8.0), end)

    def jump_clock(self) -> None:
        """Set the wall clock of a machine forward or back."""
        broker = self.rng.choice(list(self.cluster.brokers.values()))
        broker.clock.jump_ms += self.rng.choice([-60_000, -5000, 5000, 60_000])
        logger.info("clock of %s at %+d ms", broker.name, broker.clock.jump_ms)

    # --- ZooKeeper -------------------------------------------------------------------------------

    def expire_session(self) -> None:
        """End a broker's session although the broker is well."""
        owners = [
            node.ephemeral_owner
            for path, node in sorted(self.cluster.zookeeper.tree.nodes.items())
            if path.startswith("/brokers/ids/")
        ]
        if owners:
            logger.info("expire a session")
            self.cluster.zookeeper.expire(self.rng.choice(owners))

    def lose_quorum(self) -> None:
        """ZooKeeper does not answer for a while."""
        zookeeper = self.cluster.zookeeper
        if not zookeeper.is_available:
            return
        logger.info("ZooKeeper loses its quorum")
        zookeeper.lose_quorum()
        self._later(self.rng.choice([1.0, 5.0, 9.0]), zookeeper.recover)

    # --- network ---------------------------------------------------------------------------------

    def _hosts(self) -> list[str]:
        return [broker.name for broker in self.cluster.brokers.values()]

    def _cut(self, directions: list[tuple[str, str]]) -> None:
        logger.info("cut %s", directions)
        for direction in directions:
            self.cluster.network.cut(*direction)
        self._later(self.rng.choice([1.0, 4.0, 7.0, 14.0]), self.cluster.network.heal)

    def isolate(self) -> None:
        """Cut a broker off from the other brokers, and perhaps from ZooKeeper and clients."""
        host = self.rng.choice(self._hosts())
        others = [name for name in self._hosts() if name != host]
        if self.rng.random() < 0.5:
            others.append("zookeeper")
        self._cut([pair for other in others for pair in ((host, other), (other, host))])

    def cut_one_way(self) -> None:
        """Cut one direction between two hosts."""
        hosts = [*self._hosts(), "zookeeper"]
        source, target = self.rng.sample(hosts, 2)
        self._cut([(source, target)])

    def cut_pair(self) -> None:
        """Cut two brokers off from each other, while others reach both."""
        one, other = self.rng.sample(self._hosts(), 2)
        self._cut([(one, other), (other, one)])

    def lose_packets(self) -> None:
        """Lose one packet in ten."""
        logger.info("lose packets")
        self.cluster.network.loss = 0.1
        self._later(self.rng.uniform(1.0, 8.0), self.cluster.network.heal)

    def slow_link(self) -> None:
        """Delay everything to and from a broker."""
        host = self.rng.choice(self._hosts())
        logger.info("slow link %s", host)
        self.cluster.network.slow[host] = self.rng.choice([0.05, 0.4])
        self._later(self.rng.uniform(1.0, 8.0), self.cluster.network.heal)


_WEIGHTS = {
    "crash": 4,
    "stop": 4,
    "pause": 4,
    "fill_disk": 1,
    "slow_disk": 1,
    "jump_clock": 1,
    "expire_session": 2,
    "lose_quorum": 1,
    "isolate": 3,
    "cut_one_way": 3,
    "cut_pair": 2,
    "lose_packets": 2,
    "slow_link": 2,
}
