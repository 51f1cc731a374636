"""Apache Kafka on metadata that went through our store, and our readers on what Kafka writes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from broker.metadata.embedded import METADATA_FILE
from tests.support.consumed import value_of
from tests.support.kctl import Kctl
from tests.support.processes import ServerProcess, free_port
from tests.support.real_kafka import java_command

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

NUM_RECORDS = 500
GROUP = "readers"


@contextmanager
def kafka_on(directory: Path, zookeeper: str) -> Iterator[str]:
    """A broker of Apache Kafka with its log in `directory`; its address."""
    port = free_port()
    settings = {
        "broker.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": directory,
        "zookeeper.connect": zookeeper,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 5,
        "transaction.state.log.replication.factor": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    config = directory.with_suffix(".properties")
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    with ServerProcess(
        java_command("kafka.Kafka", str(config)), directory.with_suffix(".log")
    ) as s:
        s.wait_for_port(port)
        yield f"127.0.0.1:{port}"


def make_topic_and_records(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topic = NewTopic("orders", 13, 1, config={"retention.ms": "123456", "segment.bytes": "1048576"})
    admin.create_topics([topic])["orders"].result(30)
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for n in range(NUM_RECORDS):
        producer.produce("orders", str(n), key=str(n))
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition("orders", 3, 17)], asynchronous=False)
    consumer.close()


def wait_until_served(admin: AdminClient) -> None:
    """A starting Kafka accepts connections before its controller has sent it its topics."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        topic = admin.list_topics(timeout=30).topics.get("orders")
        if topic and all(partition.leader == 1 for partition in topic.partitions.values()):
            return
        time.sleep(0.05)
    raise AssertionError("Kafka does not serve its topic")


def what_clients_see(address: str) -> dict[str, object]:
    """Everything that must not change."""
    admin = AdminClient({"bootstrap.servers": address})
    wait_until_served(admin)
    description = admin.describe_topics(TopicCollection(["orders"]))["orders"].result(30)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    config = admin.describe_configs([resource])[resource].result(30)
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": GROUP, "enable.auto.commit": False}
    )
    (committed,) = consumer.committed([TopicPartition("orders", 3)], timeout=30)
    consumer.assign([TopicPartition("orders", n, 0) for n in range(13)])
    records = [value_of(message) for message in consumer.consume(NUM_RECORDS, timeout=30)]
    consumer.close()
    return {
        "cluster": admin.describe_cluster().result(30).cluster_id,
        "topic id": str(description.topic_id),
        "retention.ms": config["retention.ms"].value,
        "segment.bytes": config["segment.bytes"].value,
        "committed": committed.offset,
        "records": sorted(int(record) for record in records),
    }


@pytest.mark.zk
def test_kafka_continues_with_metadata_copied_through_our_store(
    kctl: Kctl, zookeeper: str, tmp_path: Path
) -> None:
    """The seeds' path of growing up, both ways: ZooKeeper → one broker's store → ZooKeeper."""
    directory = tmp_path / "data"
    directory.mkdir()
    with kafka_on(directory, f"{zookeeper}/first") as address:
        make_topic_and_records(address)
        before = what_clients_see(address)
    assert before["records"] == list(range(NUM_RECORDS))
    assert before["committed"] == 17

    down = kctl("metadata", "copy", f"zookeeper://{zookeeper}/first", str(directory))
    assert (down.exit_code, (directory / METADATA_FILE).exists()) == (0, True), down.stderr
    up = kctl("metadata", "copy", str(directory), f"zookeeper://{zookeeper}/second")
    assert up.exit_code == 0, up.stderr
    assert up.output == down.output

    with kafka_on(directory, f"{zookeeper}/second") as address:
        assert what_clients_see(address) == before
