"""Faults of processes: each function causes one, and returns when it is over.

Which broker it hits, and for how long, is drawn from a seeded source, so that a run can be repeated
as far as the machine's own timing allows. `network_faults` and `disk_faults` have the others.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence

from broker.controller.replica_leader_election import ElectionType
from tests.chaos.shifted_clock import write_shift
from tests.chaos.stage import BROKERS, HEAL_S, SESSION_S, Stage
from tests.cluster.asking import elect, reassign, reassigning
from tests.support.cluster import wait_until


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
    """Kill -9 of all of ZooKeeper, for a moment or longer than the session timeout."""
    stage.zookeeper.kill()
    stage.linger(1.5 * SESSION_S)
    stage.zookeeper.start()


def kill_quorum(stage: Stage) -> None:
    """Kill -9 of a majority of the ZooKeeper servers."""
    stage.zookeeper.kill(stage.zookeeper.majority)
    stage.linger(2 * SESSION_S)
    stage.zookeeper.start()


def pause_quorum(stage: Stage) -> None:
    """A majority of the ZooKeeper servers hangs."""
    with stage.zookeeper.paused(stage.zookeeper.majority):
        stage.linger(2 * SESSION_S)
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


def pause_shortly(stage: Stage) -> None:
    """A broker is paused for less than its session timeout."""
    with stage.cluster.paused(stage.random.choice(BROKERS)):
        stage.linger(0.8 * SESSION_S)


def jump_clock(stage: Stage) -> None:
    """The wall clock of a broker is set forward or back, and set right later."""
    broker_id = stage.random.choice(sorted(stage.clocks))
    write_shift(stage.clocks[broker_id], stage.random.choice((-3_600_000, -5000, 5000, 3_600_000)))
    stage.linger(2 * SESSION_S)
    write_shift(stage.clocks[broker_id], 0)


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
    kill_quorum,
    pause_quorum,
    expire_any,
    expire_controller,
    pause_leader,
    pause_controller,
    pause_shortly,
    jump_clock,
    move_replicas,
    elect_preferred,
)


def in_rounds(faults: Sequence[Fault], source: random.Random) -> Iterator[Fault]:
    """All faults in random order, repeatedly."""
    while True:
        yield from source.sample(faults, len(faults))
