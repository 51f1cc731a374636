"""Groups and transactions go on when the broker that coordinates them dies or leaves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from broker.java_strings import partition_for
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tests.cluster.asking import make_topic
from tests.support.cluster import QUICK, Cluster, running_cluster, wait_until
from tests.support.consumed import value_of
from tests.support.zookeeper import ZooKeeper

PARTITIONS = int(str(QUICK["offsets.topic.num.partitions"]))


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Three brokers that do not take partitions back by themselves."""
    directory: Path = tmp_path_factory.mktemp("coordinators")
    settings = {"auto.leader.rebalance.enable": "false"}
    with running_cluster(directory, zookeeper_server.fresh_chroot(), 3, settings) as cluster:
        yield cluster


def coordinator(cluster: Cluster, topic: str, key: str) -> int:
    """The broker that coordinates a group or a transactional id."""
    partition = partition_for(key, PARTITIONS)
    return wait_until(lambda: cluster.leader(topic, partition), f"a coordinator of {key}")


def others(cluster: Cluster, broker_id: int) -> str:
    """Bootstrap addresses without one broker's."""
    return ",".join(cluster.address(other) for other in cluster.servers if other != broker_id)


def consumer(cluster: Cluster, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
        }
    )


def read(reader: Consumer, count: int) -> list[bytes]:
    """The next values, as many as requested."""
    values: list[bytes] = []

    def got_all() -> bool:
        message = reader.poll(0.5)
        if message is not None and message.error() is None:
            values.append(value_of(message))
        return len(values) >= count

    wait_until(got_all, f"{count} records", timeout_s=40)
    return values


def write(cluster: Cluster, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def follows(cluster: Cluster, broker_id: int, topic: str, partition: int) -> None:
    """Wait until a broker is in the ISR."""
    wait_until(lambda: broker_id in cluster.isr(topic, partition), "in sync again")


def back(cluster: Cluster, broker_id: int) -> None:
    """Start a broker again, and wait until it follows the internal topics."""
    cluster.start(broker_id)
    for topic in (OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
        for partition in range(PARTITIONS):
            if cluster.partition_state(topic, partition):
                follows(cluster, broker_id, topic, partition)


@pytest.mark.timeout(120)
def test_a_group_goes_on_where_it_was_after_its_coordinator_was_killed(cluster: Cluster) -> None:
    make_topic(cluster, "read", {0: [1, 2, 3]})
    write(cluster, "read", b"1", b"2", b"3")
    reader = consumer(cluster, "survivors")
    reader.subscribe(["read"])
    assert read(reader, 2) == [b"1", b"2"]
    reader.commit(offsets=[TopicPartition("read", 0, 2)], asynchronous=False)
    dead = coordinator(cluster, OFFSETS_TOPIC, "survivors")
    cluster.kill(dead)
    partition = partition_for("survivors", PARTITIONS)
    wait_until(lambda: cluster.leader(OFFSETS_TOPIC, partition) not in (None, dead), "another one")
    write(cluster, "read", b"4")
    assert read(reader, 2) == [b"3", b"4"], "the member stays, and so does its position"

    def committed() -> bool:
        try:
            (told,) = reader.commit(offsets=[TopicPartition("read", 0, 4)], asynchronous=False)
        except Exception as error:  # noqa: BLE001  # a rebalance or the move itself: again
            assert isinstance(error.args[0], KafkaError)
            return False
        return told.error is None

    wait_until(committed, "the new coordinator takes commits", timeout_s=40)
    reader.close()
    successor = consumer(cluster, "survivors")
    (found,) = successor.committed([TopicPartition("read", 0)], timeout=20)
    assert found.offset == 4
    successor.close()
    back(cluster, dead)


@pytest.mark.timeout(120)
def test_a_transaction_over_several_leaders_commits_although_its_coordinator_is_killed(
    cluster: Cluster,
) -> None:
    make_topic(cluster, "paid", {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": "payments",
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(40)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce("paid", b"first", partition=partition)
    producer.commit_transaction(40)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce("paid", b"second", partition=partition)
    assert producer.flush(20) == 0
    dead = coordinator(cluster, TRANSACTION_STATE_TOPIC, "payments")
    cluster.kill(dead)
    producer.commit_transaction(60)
    reader = consumer(cluster, "auditors")
    reader.assign([TopicPartition("paid", partition, 0) for partition in range(3)])
    assert sorted(read(reader, 6)) == [b"first"] * 3 + [b"second"] * 3
    reader.close()
    back(cluster, dead)


@pytest.mark.timeout(120)
def test_offsets_committed_in_a_transaction_move_with_it(cluster: Cluster) -> None:
    make_topic(cluster, "source", {0: [1, 2, 3]})
    make_topic(cluster, "sink", {0: [3, 2, 1]})
    write(cluster, "source", b"a", b"b")
    reader = consumer(cluster, "copiers")
    reader.subscribe(["source"])
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "copier"}
    )
    producer.init_transactions(40)
    values = read(reader, 2)
    producer.begin_transaction()
    for value in values:
        producer.produce("sink", value)
    producer.send_offsets_to_transaction(
        [TopicPartition("source", 0, 2)], reader.consumer_group_metadata(), 40
    )
    producer.commit_transaction(40)
    group_coordinator = coordinator(cluster, OFFSETS_TOPIC, "copiers")
    (found,) = reader.committed([TopicPartition("source", 0)], timeout=20)
    assert found.offset == 2
    reader.close()
    cluster.stop(group_coordinator)
    successor = consumer(cluster, "copiers")
    (found,) = successor.committed([TopicPartition("source", 0)], timeout=40)
    assert found.offset == 2
    successor.close()
    back(cluster, group_coordinator)


def test_producer_ids_of_several_brokers_are_all_different(cluster: Cluster) -> None:
    from broker.protocol.messages.init_producer_id import InitProducerIdRequest
    from tests.support.wire import WireClient

    given: list[int] = []
    for broker_id in cluster.servers:
        with WireClient(cluster.address(broker_id)) as wire:
            for _ in range(3):
                answer = wire.ask(InitProducerIdRequest(transactional_id=None), 4)
                assert answer.error_code == 0
                given.append(answer.producer_id)
    assert len(set(given)) == len(given)
    assert len({producer_id // 1000 for producer_id in given}) == len(cluster.servers)


def test_a_topic_that_a_client_asks_any_broker_for_is_created(cluster: Cluster) -> None:
    for broker_id in cluster.servers:
        producer = Producer({"bootstrap.servers": cluster.address(broker_id)})
        producer.produce(f"wanted-{broker_id}", b"x")
        assert producer.flush(20) == 0
        assert cluster.leader(f"wanted-{broker_id}") is not None
