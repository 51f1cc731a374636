"""Log directories of brokers in a cluster: one that fails, and replicas that move between them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.model import TopicPartition
from broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.cluster.asking import in_sync, led_by
from tests.cluster.records import fetch, produce, replicated_topic, values
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.wire import WireClient
from tests.support.zookeeper import ZooKeeper


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Two brokers with two directories each."""
    directory = tmp_path_factory.mktemp("dirs")
    settings = {
        "auto.leader.rebalance.enable": "false",
        "replica.high.watermark.checkpoint.interval.ms": 500,
    }
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(directory, chroot, brokers=0, settings=settings) as made:
        for broker_id in (1, 2):
            made.start(broker_id, settings={"log.dirs": ",".join(dirs(made, broker_id))})
        yield made


def dirs(cluster: Cluster, broker_id: int) -> list[str]:
    """The directories of a broker."""
    return [str(cluster.log_dir(broker_id) / half) for half in ("left", "right")]


def place_of(cluster: Cluster, broker_id: int, name: TopicPartition) -> str | None:
    """The directory that holds a replica."""
    found = [path for path in dirs(cluster, broker_id) if (Path(path) / str(name)).exists()]
    return found[0] if found else None


def other_dir(cluster: Cluster, broker_id: int, path: str) -> str:
    """Not this one."""
    return next(other for other in dirs(cluster, broker_id) if other != path)


def test_replica_of_a_follower_moves_while_its_leader_is_written_to(cluster: Cluster) -> None:
    name = TopicPartition("moved", 0)
    replicated_topic(cluster, name, [1, 2])
    for number in range(20):
        produce(cluster, 1, name, f"before {number}")
    before = place_of(cluster, 2, name)
    assert before is not None
    target = other_dir(cluster, 2, before)
    topic = AlterReplicaLogDirTopic(name=name.topic, partitions=[0])
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=target, topics=[topic])])
    with WireClient(cluster.address(2)) as wire:
        assert wire.ask(request, 2).results[0].partitions[0].error_code == 0
    for number in range(20):
        assert produce(cluster, 1, name, f"after {number}").error_code == 0
    wait_until(lambda: place_of(cluster, 2, name) == target, "the replica has moved")
    assert produce(cluster, 1, name, "last").error_code == 0
    in_sync(cluster, name, [1, 2])
    wait_until(lambda: values(fetch(cluster, 2, name))[-1] == "last", "it is shown there too")


def test_failed_directory_moves_the_leaders_of_its_partitions_only(
    cluster: Cluster,
) -> None:
    first, second = TopicPartition("failing", 0), TopicPartition("surviving", 0)
    for name in (first, second):
        replicated_topic(cluster, name, [1, 2])
        produce(cluster, 1, name, "value")
    places = [place_of(cluster, 1, name) for name in (first, second)]
    assert None not in places
    assert places[0] != places[1]  # new partitions go where there are fewest
    shutil.rmtree(str(places[0]))  # the next checkpoint has nowhere to go
    led_by(cluster, first, 2)
    wait_until(lambda: produce(cluster, 2, first, "y").error_code == 0, "broker 2 leads")
    assert cluster.leader(*second) == 1
    assert produce(cluster, 1, second, "z").error_code == 0
