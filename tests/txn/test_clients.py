"""Transactions with unmodified clients: commit, abort, fencing, offsets."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.support.broker import RunningBroker, running_broker
from tests.txn.clients import (
    AioKafka,
    Confluent,
    Fenced,
    KafkaPython,
    TransactionalProducer,
    committed,
    create_topic,
    read,
    read_first_with_kafka_python,
)

NewProducer = Callable[[str], TransactionalProducer]
CLIENTS = [Confluent, KafkaPython, AioKafka]

numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with small internal topics and frequent checks for timeouts."""
    with running_broker(
        tmp_path_factory.mktemp("broker"),
        transaction_state_log_num_partitions=4,
        offsets_topic_num_partitions=4,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=50,
    ) as running:
        yield running


@pytest.fixture
def servers(broker: RunningBroker) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    """A topic of the test; also the name of its transactional id and group."""
    name = f"txn-{next(numbers)}"
    create_topic(servers, name, partitions=2)
    return name


@pytest.fixture(params=CLIENTS, ids=lambda client: client.__name__)
def new_producer(request: pytest.FixtureRequest, servers: str) -> Iterator[NewProducer]:
    """Creates producers of one client library for a transactional id."""
    with ExitStack() as producers:
        yield lambda name: producers.enter_context(closing(request.param(servers, name)))


def test_read_committed_returns_committed_records_only(
    servers: str, topic: str, new_producer: NewProducer
) -> None:
    producer = new_producer(topic)
    for number in range(4):
        producer.begin()
        for partition in range(2):
            producer.send(topic, b"%d" % number, partition)
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    assert sorted(read(servers, topic, "read_committed", 2)) == [b"0", b"0", b"2", b"2"]
    # Whether aborted records were sent at all depends on the client.
    assert set(read(servers, topic, "read_uncommitted", 2)) >= {b"0", b"2"}


def test_zombie_is_fenced_and_its_transaction_aborted(
    servers: str, topic: str, new_producer: NewProducer
) -> None:
    zombie = new_producer(topic)
    zombie.begin()
    zombie.send(topic, b"before", 0)
    zombie.commit()
    zombie.begin()
    zombie.send(topic, b"zombie", 0)
    heir = new_producer(topic)
    heir.begin()
    heir.send(topic, b"heir", 0)
    heir.commit()
    with pytest.raises(Fenced):
        zombie.commit()
    assert read(servers, topic, "read_committed") == [b"before", b"heir"]


def test_offsets_are_committed_with_the_transaction(
    servers: str, topic: str, new_producer: NewProducer
) -> None:
    producer = new_producer(topic)
    producer.begin()
    producer.send(topic, b"one")
    producer.send_offset(topic, 7, topic)
    producer.commit()
    producer.begin()
    producer.send(topic, b"two")
    producer.send_offset(topic, 8, topic)
    producer.abort()
    producer.begin()  # starts only after the markers of the previous transaction are written
    producer.send(topic, b"three")
    producer.commit()
    assert committed(servers, topic, topic) == 7
    assert read(servers, topic, "read_committed") == [b"one", b"three"]


def test_ongoing_transaction_blocks_read_committed_until_it_times_out(
    servers: str, topic: str
) -> None:
    with closing(Confluent(servers, topic, timeout_ms=1_500)) as slow:
        slow.begin()
        slow.send(topic, b"slow")
        slow.flush()
        with closing(Confluent(servers, f"{topic}-other")) as quick:
            quick.begin()
            quick.send(topic, b"quick")
            quick.commit()
        assert read(servers, topic, "read_committed") == []
        while not (seen := read(servers, topic, "read_committed")):
            pass  # limited by the timeout of the test
        assert seen == [b"quick"]
        with pytest.raises(Fenced):
            slow.commit()


def test_kafka_python_consumer_reads_committed_records_only(servers: str, topic: str) -> None:
    with closing(Confluent(servers, topic)) as producer:
        for value, end in [(b"a", producer.abort), (b"b", producer.commit)]:
            producer.begin()
            producer.send(topic, value)
            producer.flush()
            end()
    assert read_first_with_kafka_python(servers, topic) == b"b"
