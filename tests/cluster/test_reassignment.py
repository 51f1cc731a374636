"""Reassignments move partitions with their records, also when brokers fail meanwhile."""

import json

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from broker.errors import ErrorCode
from broker.model import TopicPartition
from tests.cluster.asking import in_sync, led_by, make_topic, reassign, reassigning, the_controller
from tests.cluster.test_deletion import partitions_on_disk
from tests.support.cluster import Cluster, wait_until
from tests.support.consumed import value_of

RECORDS = [f"record {number}".encode() for number in range(200)]


def write(cluster: Cluster, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for value in RECORDS:
        producer.produce(topic, value, partition=0)
    assert producer.flush(20) == 0


def read(cluster: Cluster, topic: str) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": f"reader of {topic}"}
    )
    consumer.assign([Position(topic, 0, 0)])
    try:
        found = consumer.consume(len(RECORDS), timeout=20)
        return [value_of(message) for message in found]
    finally:
        consumer.close()


def replicas(cluster: Cluster, name: TopicPartition) -> list[int]:
    node = cluster.znode(f"/brokers/topics/{name.topic}")
    return list(node["partitions"][str(name.partition)])


def test_partition_moves_with_its_records(shared_cluster: Cluster) -> None:
    cluster, name = shared_cluster, TopicPartition("moved", 0)
    make_topic(cluster, name.topic, {0: [1, 2]})
    write(cluster, name.topic)
    assert reassign(cluster, {name: [3, 2]}) == [0]
    wait_until(lambda: not reassigning(cluster), "it has moved")
    assert replicas(cluster, name) == [3, 2]
    in_sync(cluster, name, [2, 3])
    wait_until(lambda: partitions_on_disk(cluster, name.topic) == {2, 3}, "the old one is gone")
    assert cluster.leader(*name) in (2, 3)
    assert read(cluster, name.topic) == RECORDS


def test_several_partitions_move_at_once(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    names = [TopicPartition(f"one of many {n}".replace(" ", "-"), 0) for n in range(5)]
    for name in names:
        make_topic(cluster, name.topic, {0: [1]})
    assert reassign(cluster, {name: [2, 3] for name in names}) == [0] * 5
    wait_until(lambda: not reassigning(cluster), "all have moved")
    for name in names:
        in_sync(cluster, name, [2, 3])
        assert replicas(cluster, name) == [2, 3]


def test_reassignment_continues_after_a_controller_failure(shared_cluster: Cluster) -> None:
    cluster, name = shared_cluster, TopicPartition("survivor", 0)
    controller = the_controller(cluster)
    staying, target = controller % 3 + 1, (controller + 1) % 3 + 1
    make_topic(cluster, name.topic, {0: [staying]})
    write(cluster, name.topic)
    cluster.kill(target)  # the reassignment cannot complete before it returns
    assert reassign(cluster, {name: [target]}) == [0]
    cluster.kill(controller)
    wait_until(lambda: cluster.controller_id() == staying, "another controller")
    assert list(reassigning(cluster)) == [name]
    cluster.start(target, controller)
    wait_until(lambda: not reassigning(cluster), "it has moved")
    assert replicas(cluster, name) == [target]
    led_by(cluster, name, target)
    assert read(cluster, name.topic) == RECORDS


def test_cancelled_reassignment_changes_nothing(shared_cluster: Cluster) -> None:
    cluster, name = shared_cluster, TopicPartition("cancelled", 0)
    controller = the_controller(cluster)
    target = controller % 3 + 1
    make_topic(cluster, name.topic, {0: [controller]})
    with cluster.paused(target):
        assert reassign(cluster, {name: [target]}) == [0]
        assert reassigning(cluster) == {name: ([target, controller], [target], [controller])}
        assert reassign(cluster, {name: None}) == [0]
        assert reassigning(cluster) == {}
    assert replicas(cluster, name) == [controller]
    assert reassign(cluster, {name: None}) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    wait_until(lambda: partitions_on_disk(cluster, name.topic) == {controller}, "nothing is left")
    wait_until(lambda: cluster.live_brokers() == [1, 2, 3], "all are alive")


def test_reassign_znode_moves_partitions(shared_cluster: Cluster) -> None:
    cluster, name = shared_cluster, TopicPartition("old", 0)
    make_topic(cluster, name.topic, {0: [1]})
    wish = {"version": 1, "partitions": [{**name._asdict(), "replicas": [2, 3]}]}
    cluster.tree.create("/admin/reassign_partitions", json.dumps(wish).encode())
    wait_until(lambda: not cluster.tree.exists("/admin/reassign_partitions"), "it was done")
    assert replicas(cluster, name) == [2, 3]
    in_sync(cluster, name, [2, 3])


@pytest.mark.parametrize("target", [[], [1, 1], [1, 77], [-1]])
def test_wrong_targets_change_nothing(shared_cluster: Cluster, target: list[int]) -> None:
    cluster, name = shared_cluster, TopicPartition("stays", 0)
    if not cluster.znode(f"/brokers/topics/{name.topic}"):
        make_topic(cluster, name.topic, {0: [1, 2]})
    before = cluster.partition_state(*name)
    assert reassign(cluster, {name: target}) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    assert replicas(cluster, name) == [1, 2]
    assert cluster.partition_state(*name) == before
