"""Leaders: lost, preferred, unclean, and brought back by themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.controller.replica_leader_election import ElectionType
from broker.errors import ErrorCode
from broker.model import TopicPartition
from tests.cluster.asking import elect, in_sync, led_by, make_topic, the_controller
from tests.support.cluster import Cluster, running_cluster
from tests.support.zookeeper import ZooKeeper


@pytest.fixture(scope="module")
def calm_cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Where leadership does not move by itself."""
    settings = {"auto.leader.rebalance.enable": "false"}
    directory = tmp_path_factory.mktemp("calm")
    with running_cluster(directory, zookeeper_server.fresh_chroot(), settings=settings) as cluster:
        yield cluster


def a_follower_of(cluster: Cluster) -> int:
    """A broker that is not the controller."""
    controller = the_controller(cluster)
    return controller % 3 + 1


def test_preferred_leader_leads_again_when_asked_to(calm_cluster: Cluster) -> None:
    cluster, name = calm_cluster, TopicPartition("preferred", 0)
    preferred = a_follower_of(cluster)
    other = preferred % 3 + 1
    make_topic(cluster, name.topic, {0: [preferred, other]})
    cluster.kill(preferred)
    led_by(cluster, name, other)
    assert elect(cluster, ElectionType.PREFERRED, name) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.start(preferred)
    in_sync(cluster, name, [preferred, other])
    assert cluster.leader(*name) == other
    assert elect(cluster, ElectionType.PREFERRED, name) == 0
    assert cluster.leader(*name) == preferred
    assert elect(cluster, ElectionType.PREFERRED, name) == ErrorCode.ELECTION_NOT_NEEDED


def test_all_replicas_down_waits_for_the_isr_unless_unclean_is_on(
    calm_cluster: Cluster,
) -> None:
    """The seeds' two policies, one after the other."""
    cluster, name = calm_cluster, TopicPartition("waiting", 0)
    controller = the_controller(cluster)
    first, last = controller % 3 + 1, (controller + 1) % 3 + 1
    make_topic(cluster, name.topic, {0: [first, last]})
    cluster.kill(first)
    in_sync(cluster, name, [last])
    cluster.kill(last)
    led_by(cluster, name, None)
    cluster.start(first)
    assert cluster.leader(*name) is None
    assert cluster.isr(*name) == [last]
    assert elect(cluster, ElectionType.UNCLEAN, name) == 0
    led_by(cluster, name, first)
    cluster.start(last)
    in_sync(cluster, name, [first, last])


def test_topic_that_allows_it_is_led_by_the_first_replica_that_returns(
    calm_cluster: Cluster,
) -> None:
    cluster, name = calm_cluster, TopicPartition("careless", 0)
    controller = the_controller(cluster)
    first, last = controller % 3 + 1, (controller + 1) % 3 + 1
    make_topic(cluster, name.topic, {0: [first, last]}, unclean_leader_election_enable="true")
    cluster.kill(first)
    in_sync(cluster, name, [last])
    cluster.kill(last)
    led_by(cluster, name, None)
    cluster.start(first)
    led_by(cluster, name, first)
    cluster.start(last)
    in_sync(cluster, name, [first, last])


def test_leaders_go_back_by_themselves(tmp_path: Path, zookeeper: str) -> None:
    settings = {
        "leader.imbalance.check.interval.seconds": 1,
        "leader.imbalance.per.broker.percentage": 0,
    }
    name = TopicPartition("balanced", 0)
    with running_cluster(tmp_path, zookeeper, 2, settings) as cluster:
        controller = the_controller(cluster)
        other = 3 - controller
        make_topic(cluster, name.topic, {0: [other, controller]})
        cluster.restart(other)
        led_by(cluster, name, other)
