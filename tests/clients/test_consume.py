"""Consuming without a group, with every client: by offset, by timestamp, read_committed."""

from collections.abc import Callable
from contextlib import closing
from typing import ClassVar

import pytest
from confluent_kafka import Producer

from tests.clients.face import CODECS, Client, Joining, Message, Sending, read
from tests.clients.librdkafka import Librdkafka

START_MS = 1_600_000_000_000


@pytest.fixture
def filled(servers: str, topic: str) -> str:
    """A topic with 100 records in partition 1, a second apart, in small batches."""
    messages = [
        Message(b"%d" % number, b"k", 1, (("n", b"%d" % number),), START_MS + number * 1000)
        for number in range(100)
    ]
    Librdkafka().produce(servers, topic, messages, Sending(batch_bytes=300))
    return topic


class TestConsuming:
    needs: ClassVar = ("consume",)

    def test_reads_from_an_offset_on_in_order(
        self, client: Client, servers: str, filled: str
    ) -> None:
        with closing(client.consumer(servers)) as consumer:
            consumer.assign(filled, {1: 37})
            received = read(consumer, 63)
        assert [message.offset for message in received] == list(range(37, 100))
        assert received[0] == Message(b"37", b"k", 1, (("n", b"37"),))
        assert received[0].timestamp_ms == START_MS + 37_000

    def test_finds_offsets_by_time(self, client: Client, servers: str, filled: str) -> None:
        with closing(client.consumer(servers)) as consumer:
            assert consumer.offset_at(filled, 1, START_MS + 41_500) == 42
            assert consumer.offset_at(filled, 1, 0) == 0

    def test_knows_first_and_end_offset(self, client: Client, servers: str, filled: str) -> None:
        with closing(client.consumer(servers)) as consumer:
            assert consumer.bounds(filled, 1) == (0, 100)
            assert consumer.bounds(filled, 0) == (0, 0)

    @pytest.mark.parametrize("codec", CODECS)
    def test_reads_what_another_client_compressed(
        self, client: Client, servers: str, topic: str, codec: str
    ) -> None:
        if codec not in client.codecs:
            pytest.skip(f"{client.name} has no {codec} here")
        sent = [Message(b"%d" % number * 30) for number in range(100)]
        Librdkafka().produce(servers, topic, sent, Sending(compression=codec, linger_ms=20))
        with closing(client.consumer(servers)) as consumer:
            consumer.assign(topic, {0: 0})
            assert read(consumer, 100) == sent

    def test_reads_a_record_larger_than_it_asks_for_at_once(
        self, client: Client, servers: str, topic: str
    ) -> None:
        large = Message(b"x" * 1_040_000)
        Librdkafka().produce(servers, topic, [large, Message(b"after")])
        with closing(client.consumer(servers)) as consumer:
            consumer.assign(topic, {0: 0})
            assert read(consumer, 2) == [large, Message(b"after")]

    def test_sees_only_what_was_committed_if_it_asks_so(
        self, client: Client, servers: str, topic: str
    ) -> None:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
        producer.init_transactions(10)
        endings: list[Callable[[float], object]] = [
            producer.commit_transaction,
            producer.abort_transaction,
            producer.commit_transaction,
        ]
        for number, end in enumerate(endings):
            producer.begin_transaction()
            producer.produce(topic, b"%d" % number, partition=0)
            producer.flush(10)
            end(10)
        for isolation_level, seen in (
            ("read_committed", [b"0", b"2"]),
            ("read_uncommitted", [b"0", b"1", b"2"]),
        ):
            with closing(client.consumer(servers, Joining(isolation_level=isolation_level))) as c:
                c.assign(topic, {0: 0})
                assert [message.value for message in read(c, len(seen))] == seen
