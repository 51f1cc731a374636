"""One log directory, served by Apache Kafka and by us in turn, without loss.

Records, offsets, groups and transactions, an open one too, are the same under both; the metadata
goes between ZooKeeper and our store with `kctl metadata copy`.
"""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.clients.face import CODECS, Joining, Message, Sending, read
from tests.clients.librdkafka import Librdkafka, LibrdkafkaAdmin
from tests.metadata.test_with_kafka import kafka_on
from tests.support.broker import running_broker
from tests.support.kctl import Kctl

pytestmark = [pytest.mark.kafka, pytest.mark.zk, pytest.mark.timeout(240)]

TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "plain": (2, {"segment.bytes": "20000", "retention.ms": "-1"}),
    "codecs": (4, {}),
    "compact": (1, {"cleanup.policy": "compact"}),
    "trimmed": (1, {}),
    "transactions": (2, {}),
    "empty": (3, {}),
}
BROKER = {
    "broker_id": 1,
    "offsets_topic_num_partitions": 5,
    "group_initial_rebalance_delay_ms": 0,
}
START_MS = 1_600_000_000_000


def fill(servers: str) -> None:
    """Write plain, compressed, idempotent and transactional records, and commit offsets."""
    admin = LibrdkafkaAdmin(servers)
    for name, (partitions, configs) in TOPICS.items():
        admin.create_topic(name, partitions, configs)
    produce = Librdkafka().produce
    headers = (("h", b"1"), ("h", b"2"))
    messages = [
        Message(b"%d" % n * 20, b"k%d" % n, n % 2, headers, START_MS + n) for n in range(2_000)
    ]
    produce(servers, "plain", messages, Sending(is_idempotent=True, batch_bytes=2_000))
    for index, codec in enumerate(CODECS):
        sent = [Message(b"%d" % n * 9, partition=index) for n in range(200)]
        produce(servers, "codecs", sent, Sending(compression=codec, linger_ms=20))
    produce(servers, "compact", [Message(None if n % 5 else b"v", b"%d" % n) for n in range(50)])
    produce(servers, "trimmed", [Message(b"%d" % n) for n in range(100)])
    admin.delete_records("trimmed", 0, 37)
    admin.set_topic_config("empty", "max.message.bytes", "12345")
    for name in ("commits", "aborts", "stays-open"):
        transact(servers, name, name)
    with closing(Librdkafka().consumer(servers, Joining("readers", "static"))) as member:
        member.subscribe("plain")
        read(member, 2_000)
        member.commit("plain", {0: 400, 1: 500})


def transact(servers: str, transactional_id: str, end: str) -> Producer:
    """One transaction over two partitions, ended as `end` says."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for index in range(2):
        producer.produce("transactions", f"{transactional_id} {end}", partition=index)
    assert producer.flush(30) == 0
    if end == "commits":
        group = Consumer({"bootstrap.servers": servers, "group.id": "in transaction"})
        offsets = [TopicPartition("plain", 1, 77)]
        producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), 30)
        group.close()
        producer.commit_transaction(30)
    elif end == "aborts":
        producer.abort_transaction(30)
    return producer


def seen(servers: str) -> dict[str, object]:
    """All that must be equal on both brokers."""
    admin = AdminClient({"bootstrap.servers": servers})
    await_leaders(admin)
    described = admin.describe_topics(TopicCollection(list(TOPICS)))
    groups = {
        name: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name]
        for name in ("readers", "in transaction")
    }
    return {
        "cluster": admin.describe_cluster().result(30).cluster_id,
        "topic ids": {name: str(topic.result(30).topic_id) for name, topic in described.items()},
        "configs": {name: own_configs(admin, name) for name in TOPICS},
        "records": {name: records(servers, name, "read_uncommitted") for name in TOPICS},
        "committed": records(servers, "transactions", "read_committed"),
        "bounds": {name: bounds(servers, name) for name in TOPICS},
        "times": [offset_at(servers, START_MS + n) for n in range(0, 2_000, 333)],
        "offsets": {
            name: sorted(
                (each.topic, each.partition, each.offset)
                for each in answer.result(30).topic_partitions
            )
            for name, answer in groups.items()
        },
        "members": [
            member.group_instance_id
            for member in admin.describe_consumer_groups(["readers"])["readers"].result(30).members
        ],
    }


def await_leaders(admin: AdminClient) -> None:
    """Wait: a starting Kafka accepts connections before it knows its topics."""
    while True:
        listed = admin.list_topics(timeout=30).topics
        if all(name in listed and _is_led(listed[name]) for name in TOPICS):
            return


def _is_led(topic: Any) -> bool:
    return all(partition.leader == 1 for partition in topic.partitions.values())


def own_configs(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(30)
    return {name: entry.value for name, entry in entries.items() if not entry.is_default}


def records(servers: str, topic: str, isolation_level: str) -> list[tuple[object, ...]]:
    """All visible records, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "checker",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation_level,
        }
    )
    partitions, _ = TOPICS[topic]
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: list[tuple[object, ...]] = []
    ended = 0
    while ended < partitions:
        for message in consumer.consume(500, 0.1):
            if (error := message.error()) is None:
                where = (message.partition(), message.offset(), *message.timestamp())
                content = (message.key(), message.value(), tuple(message.headers() or ()))
                found.append((*where, *content))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
    consumer.close()
    return sorted(found, key=lambda record: record[:2])


def bounds(servers: str, topic: str) -> list[tuple[int, int]]:
    with closing(Librdkafka().consumer(servers)) as consumer:
        return [consumer.bounds(topic, index) for index in range(TOPICS[topic][0])]


def offset_at(servers: str, timestamp_ms: int) -> int | None:
    with closing(Librdkafka().consumer(servers)) as consumer:
        return consumer.offset_at("plain", 1, timestamp_ms)


def go_on(servers: str) -> None:
    """Continue to write, and complete the open transaction of the other broker."""
    before = bounds(servers, "plain")
    assert Librdkafka().produce(servers, "plain", [Message(b"more")]) == [before[0][1]]
    transact(servers, "stays-open", "aborts")
    transact(servers, "commits", "commits")
    committed = records(servers, "transactions", "read_committed")
    assert [record[5] for record in committed] == [b"commits commits"] * 4
    with closing(Librdkafka().consumer(servers, Joining("readers", "static"))) as member:
        member.subscribe("plain")
        received = read(member, 1101)
    assert min(m.offset for m in received if m.partition == 0) == 400
    assert min(m.offset for m in received if m.partition == 1) == 500


def check_story(told: Mapping[str, Any]) -> None:
    """The view contains what was written; the other tests compare views."""
    assert [len(told["records"][name]) for name in TOPICS] == [2_000, 800, 50, 63, 6, 0]
    assert told["offsets"]["readers"] == [("plain", 0, 400), ("plain", 1, 500)]
    assert told["offsets"]["in transaction"] == [("plain", 1, 77)]
    assert told["bounds"]["trimmed"] == [(37, 100)]
    assert len(told["committed"]) == 2


def test_directory_that_kafka_wrote_is_served_by_us(
    kctl: Kctl, zookeeper: str, tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    with kafka_on(directory, f"{zookeeper}/kafka") as servers:
        fill(servers)
        before = seen(servers)
    check_story(before)
    copied = kctl("metadata", "copy", f"zookeeper://{zookeeper}/kafka", str(directory))
    assert copied.exit_code == 0, copied.stderr
    with running_broker(tmp_path, **BROKER) as broker:
        assert seen(broker.bootstrap_servers) == before
        go_on(broker.bootstrap_servers)
        assert "Traceback" not in broker.output()
        assert "WARNING" not in broker.output()


def test_directory_that_we_wrote_is_served_by_kafka(
    kctl: Kctl, zookeeper: str, tmp_path: Path
) -> None:
    with running_broker(tmp_path, **BROKER) as broker:
        fill(broker.bootstrap_servers)
        before = seen(broker.bootstrap_servers)
    check_story(before)
    copied = kctl("metadata", "copy", str(broker.log_dir), f"zookeeper://{zookeeper}/ours")
    assert copied.exit_code == 0, copied.stderr
    with kafka_on(broker.log_dir, f"{zookeeper}/ours") as servers:
        assert seen(servers) == before
        go_on(servers)
    complaints = broker.log_dir.with_suffix(".log").read_text()
    assert " ERROR " not in complaints
