"""The cluster in which faults are caused, and what they have in common."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kazoo.exceptions import KazooException

from broker.model import TopicPartition
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.chaos.clients import TOPICS
from tests.chaos.ensemble import Ensemble
from tests.chaos.network import Network
from tests.crash.workload import PARTITIONS
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster, wait_until

BROKERS = (1, 2, 3)
SESSION_S = SESSION_TIMEOUT_MS / 1000
HEAL_S = 60

T = TypeVar("T")


@dataclass(frozen=True)
class Stage:
    """The cluster in which faults are caused."""

    cluster: Cluster
    zookeeper: Ensemble
    random: random.Random
    network: Network | None = None
    """None if the process has no namespaces."""
    clocks: Mapping[int, Path] = field(default_factory=dict)
    """By broker: the file that sets its clock; see `shifted_clock`."""

    def linger(self, longest_s: float) -> None:
        """Wait a random time while the load continues."""
        time.sleep(self.random.uniform(0, longest_s))

    def any_partition(self) -> TopicPartition:
        """A random partition of those that are produced to."""
        return TopicPartition(self.random.choice(TOPICS), self.random.randrange(PARTITIONS))

    def wait_for(self, condition: Callable[[], T | None], wish: str) -> T:
        """Read from ZooKeeper until the value is true; retries while ZooKeeper is down."""

        def patient() -> T | None:
            try:
                return condition()
            except KazooException:
                return None

        value = wait_until(patient, wish, HEAL_S)
        assert value is not None
        return value

    def leader(self, name: TopicPartition) -> int:
        """The leader of the partition."""
        return self.wait_for(lambda: self.cluster.leader(*name), f"{name} has a leader")

    def controller(self) -> int:
        """The id of the active controller."""
        return self.wait_for(self.cluster.controller_id, "there is a controller")

    def coordinator(self) -> int:
        """A broker that is a coordinator of groups or transactions."""
        topic = self.random.choice((OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC))
        return self.leader(TopicPartition(topic, self.random.randrange(4)))

    def kill(self, *broker_ids: int) -> None:
        """Kill brokers together and start them again, before or after their sessions expire."""
        for broker_id in broker_ids:
            self.cluster.kill(broker_id)
        self.linger(1.5 * SESSION_S)
        self.cluster.start(*broker_ids)

    def pause(self, broker_id: int) -> None:
        """Pause a broker until its session has expired, then resume it."""
        with self.cluster.paused(broker_id):
            self.wait_for(
                lambda: broker_id not in self.cluster.live_brokers(), "the pause is noticed"
            )
            self.linger(2)

    def replace(self, broker_id: int) -> None:
        """Start a broker again that ends by itself, or should: kill -9 if it does not."""
        process = self.cluster.servers[broker_id].process
        deadline = time.monotonic() + SESSION_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self.cluster.kill(broker_id)
        self.cluster.start(broker_id)

    def expire(self, broker_id: int) -> None:
        """Expire a broker's session while the broker runs."""
        path = f"/brokers/ids/{broker_id}"
        stat = self.wait_for(lambda: self.cluster.tree.exists(path), f"{broker_id} is there")
        self.zookeeper.expire_session(stat.ephemeralOwner)

    def heal(self) -> None:
        """Repair the network; wait until all brokers are there and partitions have leaders."""
        if self.network is not None:
            self.network.heal()
        self.wait_for(self._is_whole, "the cluster is whole again")

    def _is_whole(self) -> bool:
        cluster = self.cluster
        return (
            cluster.live_brokers() == list(BROKERS)
            and cluster.controller_id() is not None
            and all(cluster.leader(t, p) for t in TOPICS for p in range(PARTITIONS))
        )
