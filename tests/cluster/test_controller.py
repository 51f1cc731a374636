"""One broker decides for all: elections of controllers, failover, resignation, zombies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition
from tests.cluster.asking import ask_controller, led_by, make_topic, the_controller
from tests.conformance.admin_topics import create, look_at, topic
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.wire import WireClient
from tests.support.zookeeper import ZooKeeper


def epoch(cluster: Cluster) -> int:
    data, _ = cluster.tree.get("/controller_epoch")
    return int(data)


def other_controller(cluster: Cluster, former: int) -> int:
    """Wait for another controller."""
    return wait_until(
        lambda: (found := cluster.controller_id()) != former and found, "another controller"
    )


def known_controller(wire: WireClient) -> int:
    """The controller in the metadata of a broker, as soon as it has one."""
    return wait_until(lambda: wire.ask(look_at(), 12).controller_id, "the controller is known")


def wait_for_leaders(wire: WireClient, name: str, expected: dict[int, int]) -> None:
    """Wait until the metadata of a broker has these leaders."""
    wait_until(lambda: leaders(wire, name) == expected, f"the broker knows {expected}")


def test_one_broker_is_the_controller_and_the_others_say_so(shared_cluster: Cluster) -> None:
    controller = the_controller(shared_cluster)
    assert controller in (1, 2, 3)
    for broker_id in {1, 2, 3} - {controller}:
        with WireClient(shared_cluster.address(broker_id)) as wire:
            (refused,) = wire.ask(create(topic("refused")), 7).topics
            assert refused.error_code == ErrorCode.NOT_CONTROLLER
            assert known_controller(wire) == controller
    assert not shared_cluster.znode("/brokers/topics/refused")


def test_topic_is_led_and_followed_where_the_controller_says(shared_cluster: Cluster) -> None:
    make_topic(shared_cluster, "placed", {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})
    assert [shared_cluster.leader("placed", index) for index in range(3)] == [1, 2, 3]
    for broker_id in (1, 2, 3):
        with WireClient(shared_cluster.address(broker_id)) as wire:
            wait_for_leaders(wire, "placed", {0: 1, 1: 2, 2: 3})


def leaders(wire: WireClient, name: str) -> dict[int, int]:
    """The leaders of a topic's partitions in a broker's metadata."""
    (seen,) = wire.ask(look_at(name), 12).topics
    return {partition.partition_index: partition.leader_id for partition in seen.partitions}


def test_another_broker_controls_when_the_controller_is_killed(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    make_topic(cluster, "before", {0: [1, 2, 3]})
    former, before = the_controller(cluster), epoch(cluster)
    cluster.kill(former)
    other_controller(cluster, former)
    assert epoch(cluster) == before + 1
    led_by(cluster, TopicPartition("before", 0), *({1, 2, 3} - {former}))
    (made,) = ask_controller(cluster, create(topic("after", replicas=2))).topics
    assert made.error_code == 0
    cluster.start(former)


def test_controller_that_stops_hands_over_at_once(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    former = the_controller(cluster)
    make_topic(cluster, "handed", {0: [former, former % 3 + 1]})
    assert cluster.stop(former) == 0
    # The session need not expire: it was closed.
    assert cluster.controller_id() not in (None, former)
    assert cluster.leader("handed") == former % 3 + 1
    cluster.start(former)


def test_zombie_controller_does_nothing_when_it_wakes_up(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    make_topic(cluster, "watched", {0: [1, 2, 3]})
    former = the_controller(cluster)
    with cluster.paused(former):
        current = other_controller(cluster, former)
        led_by(cluster, TopicPartition("watched", 0), *({1, 2, 3} - {former}))
        now = epoch(cluster)
    wait_until(lambda: former in cluster.live_brokers(), "the zombie has registered again")
    wait_until(lambda: sorted(cluster.isr("watched")) == [1, 2, 3], "it follows")
    assert (cluster.controller_id(), epoch(cluster)) == (current, now)
    with WireClient(cluster.address(former)) as wire:
        (refused,) = wire.ask(create(topic("late")), 7).topics
        assert refused.error_code == ErrorCode.NOT_CONTROLLER


def test_many_leaders_move_in_one_go(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    controller = the_controller(cluster)
    leaving = controller % 3 + 1
    others = [broker_id for broker_id in (1, 2, 3) if broker_id != leaving]
    make_topic(cluster, "many", {index: [leaving, *others] for index in range(100)})
    cluster.kill(leaving)
    led_by(cluster, TopicPartition("many", 99), *others)
    # They were written together: when one has moved, all have.
    assert {cluster.leader("many", index) for index in range(100)} <= set(others)
    cluster.start(leaving)


@pytest.fixture
def fair_cluster(tmp_path: Path, zookeeper_server: ZooKeeper) -> Iterator[Cluster]:
    fair = {"controller.election": "fair"}
    with running_cluster(tmp_path, zookeeper_server.fresh_chroot(), 0, fair) as cluster:
        yield cluster


def test_fair_election_goes_by_the_queue(fair_cluster: Cluster) -> None:
    """The seeds' second way: sequential nodes, each broker watches the one before it."""
    for broker_id in (2, 3, 1):
        fair_cluster.start(broker_id)
    assert fair_cluster.controller_id() == 2
    assert len(fair_cluster.tree.get_children("/controller_candidates")) == 3
    fair_cluster.kill(2)
    assert other_controller(fair_cluster, 2) == 3
    fair_cluster.start(2)  # at the end of the queue
    assert fair_cluster.stop(3) == 0
    assert other_controller(fair_cluster, 3) == 1
