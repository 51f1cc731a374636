"""What can go wrong in a cluster, and does: each fault happens and is over when it returns.

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

from broker.controller.elections import ElectionType
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
    """Where faults happen."""

    cluster: Cluster
    zookeeper: ZooKeeper
    random: random.Random

    def linger(self, longest_s: float) -> None:
        """Let a fault last: the load goes on meanwhile, and nobody knows what it meets."""
        time.sleep(self.random.uniform(0, longest_s))

    def any_partition(self) -> TopicPartition:
        """One of those that are written to."""
        return TopicPartition(self.random.choice(TOPICS), self.random.randrange(PARTITIONS))

    def wait_for(self, condition: Callable[[], T | None], wish: str) -> T:
        """The first true value of what is looked up in ZooKeeper, which may be away just now."""

        def patient() -> T | None:
            try:
                return condition()
            except KazooException:
                return None

        value = wait_until(patient, wish, HEAL_S)
        assert value is not None
        return value

    def leader(self, name: TopicPartition) -> int:
        """Who leads it now."""
        return self.wait_for(lambda: self.cluster.leader(*name), f"{name} has a leader")

    def controller(self) -> int:
        """Who is the controller now."""
        return self.wait_for(self.cluster.controller_id, "there is a controller")

    def coordinator(self) -> int:
        """Who coordinates some groups or transactions now."""
        topic = self.random.choice((OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC))
        return self.leader(TopicPartition(topic, self.random.randrange(4)))

    def kill(self, *broker_ids: int) -> None:
        """Kill brokers together, and start them again: before or after the cluster noticed."""
        for broker_id in broker_ids:
            self.cluster.kill(broker_id)
        self.linger(1.5 * SESSION_S)
        self.cluster.start(*broker_ids)

    def pause(self, broker_id: int) -> None:
        """Let a broker stand still until the cluster takes it for dead, and then go on."""
        with self.cluster.paused(broker_id):
            self.wait_for(
                lambda: broker_id not in self.cluster.live_brokers(), "the pause is noticed"
            )
            self.linger(2)

    def expire(self, broker_id: int) -> None:
        """End a broker's session while the broker goes on."""
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
    """Stop a broker in order, and start it again."""
    broker_id = stage.random.choice(BROKERS)
    stage.cluster.stop(broker_id)
    stage.linger(2)
    stage.cluster.start(broker_id)


def restart_zookeeper(stage: Stage) -> None:
    """Kill -9 of ZooKeeper; it is away for a moment, or for longer than a session may be."""
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
    """A leader stands still beyond its session, and wakes up as a zombie."""
    stage.pause(stage.leader(stage.any_partition()))


def pause_controller(stage: Stage) -> None:
    """The controller stands still beyond its session, and wakes up as a zombie."""
    stage.pause(stage.controller())


def move_replicas(stage: Stage) -> None:
    """A partition gives up a replica, or gets it back, or its replicas change places."""
    stage.heal()
    replicas = stage.random.choice(list(itertools.permutations(BROKERS)))
    wanted = list(replicas[: stage.random.choice((2, 3))])
    name = stage.any_partition()
    assert reassign(stage.cluster, {name: wanted}) == [0]
    stage.linger(1)
    wait_until(lambda: name not in reassigning(stage.cluster), f"{name} on {wanted}", HEAL_S)


def elect_preferred(stage: Stage) -> None:
    """Leadership of some partition goes back to where it belongs."""
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
    """Every fault once, in some order, again and again."""
    while True:
        yield from source.sample(faults, len(faults))
