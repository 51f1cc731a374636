"""Two of our brokers and one Apache Kafka in one cluster: each leads, follows and controls.

Brokers 1 and 2 are ours, broker 3 is Kafka. Each is the controller once, and the others follow it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from tests.cluster.asking import delete_topic, in_sync, led_by, make_topic, reassign, reassigning
from tests.cluster.records import fetch, log_bytes, produce, replicated_topic, values
from tests.cluster.rolling import SETTINGS as ROLLING_SETTINGS
from tests.cluster.rolling import roll
from tests.support.cluster import SESSION_TIMEOUT_MS, Cluster, running_cluster, wait_until
from tests.support.real_kafka import joined_kafka
from tests.support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

OURS, KAFKA = (1, 2), 3
EVERYBODY = (*OURS, KAFKA)
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "group.initial.rebalance.delay.ms": 0,
    "controlled.shutdown.retry.backoff.ms": 200,
    "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
}


ROLLING_LIMIT_S = 10.0
"""Kafka starts slowly, and takes the processors from the others while it does."""


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """All three, in sync."""
    directory = tmp_path_factory.mktemp("mixed")
    chroot = zookeeper_server.fresh_chroot()
    with (
        running_cluster(directory, chroot, brokers=2, settings=SETTINGS) as made,
        joined_kafka(directory, chroot, KAFKA, SETTINGS) as address,
    ):
        made.ports[KAFKA] = int(address.rpartition(":")[2])
        wait_until(lambda: made.live_brokers() == [1, 2, 3], "all have joined", timeout_s=60)
        yield made


def control_by(cluster: Cluster, wanted: int) -> None:
    """Trigger elections until this broker is the controller."""

    def is_won() -> bool:
        controller = cluster.controller_id()
        if controller not in (None, wanted):
            cluster.tree.delete("/controller")
        return controller == wanted

    wait_until(is_won, f"broker {wanted} controls", timeout_s=60)


@dataclass
class Load:
    """A running idempotent producer with acks=all, and the records it got acknowledged."""

    topic: str
    acknowledged: list[str] = field(default_factory=list)
    failed: list[KafkaError] = field(default_factory=list)

    def run(self, bootstrap_servers: str, is_over: threading.Event) -> None:
        """Produce until stopped, then wait for the acknowledgements."""
        producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 5}
        )
        number = 0
        while not is_over.is_set():
            producer.produce(self.topic, str(number), on_delivery=self._answered)
            producer.poll(0.002)
            number += 1
        assert producer.flush(60) == 0

    def _answered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(error)
        else:
            self.acknowledged.append((message.value() or b"").decode())


@contextmanager
def under_load(cluster: Cluster, topic: str) -> Iterator[Load]:
    """Write to a topic while the block runs."""
    load, is_over = Load(topic), threading.Event()
    writing = threading.Thread(target=load.run, args=(cluster.bootstrap_servers, is_over))
    writing.start()
    try:
        yield load
    finally:
        is_over.set()
        writing.join()


def consumed(cluster: Cluster, topic: str, count: int) -> list[str]:
    """Everything in a topic, as a group reads it."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"readers of {topic}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: list[str] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        messages = consumer.consume(1000, 1)
        found += [(m.value() or b"").decode() for m in messages if not m.error()]
    consumer.close()
    return found


@pytest.mark.parametrize("leader", EVERYBODY)
def test_followers_have_the_same_bytes_whichever_broker_leads(
    cluster: Cluster, leader: int
) -> None:
    name = TopicPartition(f"led-by-{leader}", 0)
    replicated_topic(cluster, name, [leader, *(b for b in EVERYBODY if b != leader)])
    for number in range(10):
        answer = produce(cluster, leader, name, f"value {number}")
        assert ErrorCode(answer.error_code) == ErrorCode.NONE
    assert {log_bytes(cluster, broker_id, name) for broker_id in EVERYBODY} == {
        log_bytes(cluster, leader, name)
    }
    assert values(fetch(cluster, leader, name)) == [f"value {number}" for number in range(10)]


@pytest.mark.parametrize("controller", EVERYBODY)
def test_topics_are_created_reassigned_and_deleted_whichever_broker_is_controller(
    cluster: Cluster, controller: int
) -> None:
    control_by(cluster, controller)
    name = TopicPartition(f"controlled-by-{controller}", 0)
    make_topic(cluster, name.topic, {0: [1, 2]})
    wait_until(lambda: produce(cluster, 1, name, "value").error_code == 0, "broker 1 leads")
    for replicas in ([2, 3], [3, 1]):
        assert reassign(cluster, {name: replicas}) == [0]
        wait_until(lambda: not reassigning(cluster), f"moved to {replicas}")
        in_sync(cluster, name, replicas)
    led_by(cluster, name, 3, 1)
    leader = cluster.leader(*name) or 0
    assert "value" in values(fetch(cluster, leader, name))
    assert delete_topic(cluster, name.topic) == 0
    wait_until(lambda: not cluster.tree.exists(f"/brokers/topics/{name.topic}"), "it is gone")


def test_partition_moves_between_ours_and_kafkas_under_load(cluster: Cluster) -> None:
    name = TopicPartition("wandering", 0)
    make_topic(cluster, name.topic, {0: [1, 2]})
    with under_load(cluster, name.topic) as load:
        for replicas in ([3, 1], [2, 3], [1, 2], [3, 2, 1]):
            seen = len(load.acknowledged)
            assert reassign(cluster, {name: replicas}) == [0]
            in_sync(cluster, name, replicas)
            wait_until(lambda: len(load.acknowledged) > seen + 50, "the producer goes on")  # noqa: B023
    assert not load.failed
    assert consumed(cluster, name.topic, len(load.acknowledged)) == load.acknowledged
    wait_until(
        lambda: len({log_bytes(cluster, broker_id, name) for broker_id in EVERYBODY}) == 1,
        "all replicas are the same",
    )


def test_killed_leader_of_ours_is_replaced_by_kafka_and_returns(cluster: Cluster) -> None:
    name = TopicPartition("failing-over", 0)
    replicated_topic(cluster, name, [1, 3, 2])
    with under_load(cluster, name.topic) as load:
        wait_until(lambda: len(load.acknowledged) > 100, "the producer is at work")
        cluster.kill(1)
        led_by(cluster, name, 3)
        seen = len(load.acknowledged)
        wait_until(lambda: len(load.acknowledged) > seen + 100, "it goes on with Kafka")
        cluster.start(1)
        in_sync(cluster, name, [1, 2, 3])
    assert not load.failed
    assert consumed(cluster, name.topic, len(load.acknowledged)) == load.acknowledged
    wait_until(
        lambda: len({log_bytes(cluster, broker_id, name) for broker_id in EVERYBODY}) == 1,
        "all replicas are the same",
    )


@pytest.mark.parametrize("apache", [{3}, {2, 3}], ids=["one Apache", "two Apache"])
def test_rolling_restart_of_a_mixed_cluster_delays_no_acknowledgement_for_long(
    tmp_path: Path, zookeeper_server: ZooKeeper, apache: set[int]
) -> None:
    chroot = zookeeper_server.fresh_chroot()
    settings = ROLLING_SETTINGS | {"controlled.shutdown.retry.backoff.ms": 200}
    with running_cluster(tmp_path, chroot, settings=settings, apache=frozenset(apache)) as mixed:
        waits = roll(mixed, "rolling", rounds=1)
    print("longest acknowledgement at each restart:", waits)
    assert max(waits) < ROLLING_LIMIT_S
