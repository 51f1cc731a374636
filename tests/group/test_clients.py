"""Consumer groups with librdkafka, kafka-python and aiokafka."""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker import RunningBroker, running_broker
from tests.support.consumed import offset_of, partition_of, value_of

SETTINGS = {
    "group_initial_rebalance_delay_ms": 100,
    "offsets_topic_replication_factor": 1,
    "transaction_state_log_replication_factor": 1,
    "transaction_state_log_min_isr": 1,
}
PARTITIONS = 4
RECORDS = 40


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("groups"), **SETTINGS) as running:
        yield running


@pytest.fixture
def topic(broker: RunningBroker) -> str:
    return filled_topic(broker)


def filled_topic(broker: RunningBroker) -> str:
    """A topic with RECORDS records, distributed evenly."""
    name = f"topic-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(10)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(name, str(number), partition=number % PARTITIONS)
    assert producer.flush(10) == 0
    return name


def consumer(broker: RunningBroker, group_id: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def begin_at(broker: RunningBroker, group_id: str, topic: str, offset: int) -> None:
    """Commit the offset for all partitions, as an administrator."""
    simple = consumer(broker, group_id)
    offsets = [TopicPartition(topic, index, offset) for index in range(PARTITIONS)]
    simple.commit(offsets=offsets, asynchronous=False)
    simple.close()


def poll_until(
    consumers: list[Consumer], reached: Callable[[], bool], seconds: float = 20
) -> list[str]:
    """Poll in turns until a condition holds; returns the values read."""
    read, deadline = [], time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "it did not come to pass"
        for each in consumers:
            message = each.poll(0.02)
            if message is not None and not message.error():
                read.append(value_of(message).decode())
    return read


def shares(consumers: list[Consumer]) -> list[int]:
    return sorted(len(each.assignment()) for each in consumers)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_librdkafka_members_share_the_partitions_and_take_over(
    broker: RunningBroker, topic: str, strategy: str
) -> None:
    group_id = f"rebalance-{strategy}"
    members = [consumer(broker, group_id, partition_assignment_strategy=strategy) for _ in "ab"]
    for member in members:
        member.subscribe([topic])
    poll_until(members, lambda: shares(members) == [2, 2])
    members.pop().close()
    poll_until(members, lambda: shares(members) == [4])
    members.append(consumer(broker, group_id, partition_assignment_strategy=strategy))
    members[-1].subscribe([topic])
    poll_until(members, lambda: shares(members) == [2, 2])
    for member in members:
        member.close()


def test_every_record_is_read_once_across_rebalances(broker: RunningBroker, topic: str) -> None:
    read: list[str] = []
    while len(read) < RECORDS:
        member = consumer(broker, "relay")
        member.subscribe([topic])
        messages = member.consume(8, 10)
        read += [value_of(message).decode() for message in messages]
        assert messages
        last = {partition_of(message): offset_of(message) + 1 for message in messages}
        offsets = [TopicPartition(topic, index, offset) for index, offset in last.items()]
        member.commit(offsets=offsets, asynchronous=False)
        member.close()
    assert sorted(read, key=int) == [str(number) for number in range(RECORDS)]


def test_static_member_keeps_its_partitions(broker: RunningBroker, topic: str) -> None:
    members = {name: consumer(broker, "static", group_instance_id=name) for name in ("a", "b")}
    for member in members.values():
        member.subscribe([topic])
    poll_until(list(members.values()), lambda: shares(list(members.values())) == [2, 2])
    before = {name: sorted(tp.partition for tp in m.assignment()) for name, m in members.items()}
    rebalances = rebalances_of(broker, "static")  # one, or two if a member joined late
    assert rebalances
    members["a"].close()  # a static member does not leave
    members["a"] = consumer(broker, "static", group_instance_id="a")
    members["a"].subscribe([topic])
    poll_until(list(members.values()), lambda: len(members["a"].assignment()) == 2)
    after = {name: sorted(tp.partition for tp in m.assignment()) for name, m in members.items()}
    assert after == before
    assert rebalances_of(broker, "static") == rebalances
    for member in members.values():
        member.close()


def rebalances_of(broker: RunningBroker, group: str) -> list[str]:
    """What the broker has logged about the generations of a group."""
    lines = broker.output().splitlines()
    return [line for line in lines if f"group={group} generation=" in line]


@pytest.mark.filterwarnings("ignore:.* is deprecated")  # raised by the import of kafka-python
def test_kafka_python_continues_at_the_offset_of_another_client(
    broker: RunningBroker, topic: str
) -> None:
    from kafka import KafkaConsumer

    begin_at(broker, "relay-to-python", topic, 8)
    second = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        group_id="relay-to-python",
        enable_auto_commit=False,
        consumer_timeout_ms=5000,
    )
    read: list[int] = []
    for message in second:
        read.append(message.offset)
        if len(read) == 2 * PARTITIONS:
            break
    second.commit()
    second.close()
    assert sorted(read) == [8] * PARTITIONS + [9] * PARTITIONS
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    request = ConsumerGroupTopicPartitions("relay-to-python")
    answer = admin.list_consumer_group_offsets([request])["relay-to-python"].result(10)
    assert [tp.offset for tp in answer.topic_partitions] == [10] * PARTITIONS


def test_aiokafka_members_share_the_partitions_and_commit(
    broker: RunningBroker, topic: str
) -> None:
    begin_at(broker, "aio", topic, 0)

    async def work() -> None:
        settings: dict[str, Any] = {
            "bootstrap_servers": broker.bootstrap_servers,
            "group_id": "aio",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 200,
        }
        members = [AIOKafkaConsumer(topic, **settings) for _ in range(2)]
        await asyncio.gather(*(member.start() for member in members))
        try:
            read = 0
            async with asyncio.timeout(20):
                while read < RECORDS:
                    for member in members:
                        batches = await member.getmany(timeout_ms=50)
                        read += sum(len(batch) for batch in batches.values())
            assert read == RECORDS
            assert sorted(len(member.assignment()) for member in members) == [2, 2]
            await asyncio.gather(*(member.commit() for member in members))
            partitions = [AioTopicPartition(topic, n) for n in range(PARTITIONS)]
            assert [await members[0].committed(each) for each in partitions] == [10] * PARTITIONS
        finally:
            await asyncio.gather(*(member.stop() for member in members))

    asyncio.run(work())


@pytest.mark.parametrize("commits", [True, False], ids=["commits", "aborts"])
def test_offsets_of_a_transaction_are_committed_with_it(
    broker: RunningBroker, topic: str, commits: bool
) -> None:
    group_id = f"exactly-once-{commits}"
    begin_at(broker, group_id, topic, 1)
    member = consumer(broker, group_id)
    member.subscribe([topic])
    poll_until([member], lambda: shares([member]) == [4])
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"id-{topic}"}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, "made of what was read", partition=0)
    offsets = [TopicPartition(topic, index, 5) for index in range(PARTITIONS)]
    producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), 20)
    if commits:
        producer.commit_transaction(20)
    else:
        producer.abort_transaction(20)
    committed = member.committed([TopicPartition(topic, n) for n in range(PARTITIONS)], 10)
    assert [tp.offset for tp in committed] == [5 if commits else 1] * PARTITIONS
    member.close()


def test_admin_client_describes_alters_and_deletes_groups(
    broker: RunningBroker, topic: str
) -> None:
    member = consumer(broker, "seen")
    member.subscribe([topic])
    poll_until([member], lambda: shares([member]) == [4])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    described = admin.describe_consumer_groups(["seen"])["seen"].result(10)
    assert described.state.name == "STABLE"
    assert [len(m.assignment.topic_partitions) for m in described.members] == [4]
    assert "seen" in {g.group_id for g in admin.list_consumer_groups().result(10).valid}
    member.close()
    offsets = [TopicPartition(topic, 1, 7)]
    request = ConsumerGroupTopicPartitions("seen", offsets)
    admin.alter_consumer_group_offsets([request])["seen"].result(10)
    listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("seen")])
    assert [(tp.partition, tp.offset) for tp in listed["seen"].result(10).topic_partitions] == [
        (1, 7)
    ]
    admin.delete_consumer_groups(["seen"])["seen"].result(10)
    assert "seen" not in {g.group_id for g in admin.list_consumer_groups().result(10).valid}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["closed", "killed"])
def test_groups_and_offsets_survive_a_restart(tmp_path: Path, how: signal.Signals) -> None:
    with running_broker(tmp_path, **SETTINGS) as before:
        topic = filled_topic(before)
        member = consumer(before, "kept", group_instance_id="me")
        member.subscribe([topic])
        poll_until([member], lambda: shares([member]) == [4])
        offsets = [TopicPartition(topic, n, n + 1) for n in range(PARTITIONS)]
        member.commit(offsets=offsets, asynchronous=False)
        member.close()
        before.server.process.send_signal(how)
        before.server.process.wait(10)
    with running_broker(tmp_path, **SETTINGS) as after:
        admin = AdminClient({"bootstrap.servers": after.bootstrap_servers})
        described = admin.describe_consumer_groups(["kept"])["kept"].result(10)
        assert described.state.name == "STABLE"
        assert [m.group_instance_id for m in described.members] == ["me"]
        reader = consumer(after, "kept", group_instance_id="me")
        reader.subscribe([topic])
        poll_until([reader], lambda: shares([reader]) == [4])
        committed = reader.committed([TopicPartition(topic, n) for n in range(PARTITIONS)], 10)
        assert [tp.offset for tp in committed] == [1, 2, 3, 4]
        reader.close()
