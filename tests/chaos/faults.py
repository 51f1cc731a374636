"""Faults of a cluster: each function causes one, and returns when it is over.

Which broker it hits, and for how long, is drawn from a seeded source, so that a run can be repeated
as far as the machine's own timing allows.
"""

import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from kazoo.exceptions import KazooException

from broker.controller.replica_leader_election import ElectionType
from broker.model import TopicPartition
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.chaos.clients import TOPICS
from tests.cluster.asking import elect, reassign, reassigning
from tests.crash.workload import PARTITIONS
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster, wait_until
from tests.support.zookeeper import ZooKeeper

BROKERS = (1, 2, 3)
SESSION_S = SESSION_TIMEOUT_MS / 1000
HEAL_S = 60

T = TypeVar("T")


@dataclass(frozen=True)
class Stage:
    """The cluster in which faults are caused."""

    cluster: Cluster
    zookeeper: ZooKeeper
    random: random.Random

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

    def expire(self, broker_id: int) -> None:
        """Expire a broker's session while the broker runs."""
        path = f"/brokers/ids/{broker_id}"
        stat = self.wait_for(lambda: self.cluster.tree.exists(path), f"{broker_id} is there")
        self.zookeeper.expire_session(stat.ephemeralOwner)

    def heal(self) -> None:
        """Wait until every broker is in the cluster, and every partition has a leader."""
        self.wait_for(self._is_whole, "the cluster is whole again")

    def _is_whole(self) -> bool:
        cluster = self.cluster
        return (
            cluster.live_brokers() == list(BROKERS)
            and cluster.controller_id() is not None
            and all(cluster.leader(t, p) for t in TOPICS for p in range(PARTITIONS))
        )


def kill_leader(stage: Stage) -> None:
    """Kill -9 of the leader of some partition."""
    stage.kill(stage.leader(stage.any_partition()))


def kill_controller(stage: Stage) -> None:
    """Kill -9 of the controller."""
    stage.kill(stage.controller())


def kill_coordinator(stage: Stage) -> None:
    """Kill -9 of a coordinator of groups or transactions."""
    stage.kill(stage.coordinator())


def kill_two(stage: Stage) -> None:
    """Kill -9 of any two brokers at once."""
    stage.kill(*stage.random.sample(BROKERS, 2))


def kill_all(stage: Stage) -> None:
    """Kill -9 of all brokers."""
    stage.kill(*BROKERS)


def stop_any(stage: Stage) -> None:
    """Stop a broker cleanly and start it again."""
    broker_id = stage.random.choice(BROKERS)
    stage.cluster.stop(broker_id)
    stage.linger(2)
    stage.cluster.start(broker_id)


def restart_zookeeper(stage: Stage) -> None:
    """Kill -9 of ZooKeeper; it is down for a moment, or longer than the session timeout."""
    stage.zookeeper.kill()
    stage.linger(1.5 * SESSION_S)
    stage.zookeeper.start()


def expire_any(stage: Stage) -> None:
    """The session of some broker expires."""
    stage.expire(stage.random.choice(BROKERS))


def expire_controller(stage: Stage) -> None:
    """The controller's session expires."""
    stage.expire(stage.controller())


def pause_leader(stage: Stage) -> None:
    """A leader is paused beyond its session timeout and resumes as a zombie."""
    stage.pause(stage.leader(stage.any_partition()))


def pause_controller(stage: Stage) -> None:
    """The controller is paused beyond its session timeout and resumes as a zombie."""
    stage.pause(stage.controller())


def move_replicas(stage: Stage) -> None:
    """A partition loses a replica, gets it back, or its replicas are reordered."""
    stage.heal()
    replicas = stage.random.choice(list(itertools.permutations(BROKERS)))
    wanted = list(replicas[: stage.random.choice((2, 3))])
    name = stage.any_partition()
    assert reassign(stage.cluster, {name: wanted}) == [0]
    stage.linger(1)
    wait_until(lambda: name not in reassigning(stage.cluster), f"{name} on {wanted}", HEAL_S)


def elect_preferred(stage: Stage) -> None:
    """The preferred leader of a random partition is elected."""
    stage.heal()
    elect(stage.cluster, ElectionType.PREFERRED, stage.any_partition())


Fault = Callable[[Stage], None]
ALL: tuple[Fault, ...] = (
    kill_leader,
    kill_controller,
    kill_coordinator,
    kill_two,
    kill_all,
    stop_any,
    restart_zookeeper,
    expire_any,
    expire_controller,
    pause_leader,
    pause_controller,
    move_replicas,
    elect_preferred,
)


def in_rounds(faults: tuple[Fault, ...], source: random.Random) -> Iterator[Fault]:
    """All faults in random order, repeatedly."""
    while True:
        yield from source.sample(faults, len(faults))
