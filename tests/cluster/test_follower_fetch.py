"""Consumers read from the replica in their rack (KIP-392); throttled replicas take their time."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.cluster.asking import in_sync, reassign
from tests.cluster.records import (
    fetch,
    log_bytes,
    produce,
    produce_request,
    replicated_topic,
    values,
)
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.wire import WireClient
from tests.support.zookeeper import ZooKeeper

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
TOPIC, BROKER = 2, 4


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Three brokers, each in a rack of its own: a, b and c."""
    settings = {
        "replica.selector.class": RACK_AWARE,
        "replica.fetch.max.bytes": 100_000,
        "auto.leader.rebalance.enable": "false",
    }
    directory = tmp_path_factory.mktemp("racks")
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(directory, chroot, brokers=0, settings=settings) as made:
        for broker_id, rack in enumerate("abc", start=1):
            made.start(broker_id, settings={"broker.rack": rack})
        yield made


def test_consumer_is_sent_to_the_replica_in_its_rack(cluster: Cluster) -> None:
    name = TopicPartition("nearby", 0)
    replicated_topic(cluster, name, [1, 2])
    produce(cluster, 1, name, "value")
    sent = fetch(cluster, 1, name, rack_id="b")
    assert (sent.preferred_read_replica, len(sent.records or b"")) == (2, 0)
    for here in ("a", "c", ""):
        answered = fetch(cluster, 1, name, rack_id=here)
        assert (answered.preferred_read_replica, values(answered)) == (-1, ["value"])
    wait_until(lambda: values(fetch(cluster, 2, name, rack_id="b")) == ["value"], "it is there")


def test_producer_that_sends_to_a_follower_gets_the_leader_and_its_address(
    cluster: Cluster,
) -> None:
    name = TopicPartition("elsewhere", 0)
    replicated_topic(cluster, name, [1, 2])
    with WireClient(cluster.address(2)) as wire:
        answer = wire.ask(produce_request(name, "value"), 11)
    (refused,) = answer.responses[0].partition_responses
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (1, 0)
    (node,) = answer.node_endpoints
    assert (node.node_id, f"{node.host}:{node.port}", node.rack) == (1, cluster.address(1), "a")


def test_offset_that_the_follower_does_not_have_is_out_of_its_range(cluster: Cluster) -> None:
    name = TopicPartition("beyond", 0)
    replicated_topic(cluster, name, [1, 2])
    produce(cluster, 1, name, "value")
    assert fetch(cluster, 2, name, offset=9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(cluster, 1, name, offset=9, rack_id="b").error_code == (
        ErrorCode.OFFSET_OUT_OF_RANGE
    )


def test_librdkafka_follows_to_its_rack(cluster: Cluster) -> None:
    name = TopicPartition("followed", 0)
    replicated_topic(cluster, name, [1, 3])
    for number in range(3):
        produce(cluster, 1, name, f"{number}")
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "racks",
            "client.rack": "c",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([name.topic])
    found: list[bytes | None] = []
    deadline = time.monotonic() + 30
    while len(found) < 3 and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(3, 1) if not message.error()]
    consumer.close()
    assert found == [b"0", b"1", b"2"]


def test_new_replica_is_slowed_by_a_throttle_and_fast_without(cluster: Cluster) -> None:
    name = TopicPartition("throttled", 0)
    replicated_topic(cluster, name, [1])
    for _ in range(4):
        assert produce(cluster, 1, name, *("x" * 10_000 for _ in range(20))).error_code == 0
    alter(cluster, TOPIC, name.topic, "leader.replication.throttled.replicas", "*")
    alter(cluster, TOPIC, name.topic, "follower.replication.throttled.replicas", "*")
    for broker_id in (1, 2):
        alter(cluster, BROKER, str(broker_id), "leader.replication.throttled.rate", "20000")
        alter(cluster, BROKER, str(broker_id), "follower.replication.throttled.rate", "20000")
    assert reassign(cluster, {name: [1, 2]}) == [0]
    wait_until(lambda: (cluster.log_dir(2) / str(name)).exists(), "the new replica begins")
    time.sleep(2)  # what is tested is that it is not done by now
    assert cluster.isr(*name) == [1]
    for broker_id in (1, 2):
        alter(cluster, BROKER, str(broker_id), "leader.replication.throttled.rate", "100000000")
        alter(cluster, BROKER, str(broker_id), "follower.replication.throttled.rate", "100000000")
    in_sync(cluster, name, [1, 2])
    assert log_bytes(cluster, 1, name) == log_bytes(cluster, 2, name)


def alter(cluster: Cluster, resource_type: int, name: str, key: str, value: str) -> None:
    """Set one setting of a topic or a broker."""
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[config]
    )
    broker_id = int(name) if resource_type == BROKER else 1
    with WireClient(cluster.address(broker_id)) as wire:
        (answer,) = wire.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == 0, answer.error_message
