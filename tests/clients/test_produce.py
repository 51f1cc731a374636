"""Producing, with every client: records are read as they were sent, in order."""

from collections.abc import Sequence
from contextlib import closing
from typing import ClassVar

import pytest

from tests.clients.face import Client, Message, Refused, Sending, read
from tests.clients.librdkafka import Librdkafka, LibrdkafkaAdmin

ALL_KINDS = [
    Message(b"value", b"key"),
    Message(b"no key"),
    Message(None, b"tombstone"),
    Message(b"other partition", b"k", partition=3),
    Message(b"headers", b"k", headers=(("a", b"1"), ("a", b"2"), ("b", b"3"))),
]


def read_back(servers: str, topic: str, count: int) -> list[Message]:
    with closing(Librdkafka().consumer(servers)) as consumer:
        consumer.assign(topic, dict.fromkeys(range(4), 0))
        return sorted(read(consumer, count), key=lambda message: message.partition)


def by_partition(messages: Sequence[Message]) -> list[Message]:
    return sorted(messages, key=lambda message: message.partition)


class TestProducing:
    needs: ClassVar = ("produce",)

    @pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
    def test_records_of_every_kind_arrive_as_they_were_sent(
        self, client: Client, servers: str, topic: str, compression: str | None
    ) -> None:
        if compression and compression not in client.codecs:
            pytest.skip(f"{client.name} has no {compression} here")
        client.produce(servers, topic, ALL_KINDS, Sending(compression=compression))
        assert read_back(servers, topic, len(ALL_KINDS)) == by_partition(ALL_KINDS)

    @pytest.mark.parametrize("acks", [0, 1, -1])
    def test_records_keep_their_order_with_any_acks(
        self, client: Client, servers: str, topic: str, acks: int
    ) -> None:
        sent = [Message(b"%d" % number, partition=number % 2) for number in range(20)]
        client.produce(servers, topic, by_partition(sent), Sending(acks=acks))
        assert read_back(servers, topic, len(sent)) == by_partition(sent)

    def test_idempotent_producer_stores_each_record_once(
        self, client: Client, servers: str, topic: str
    ) -> None:
        sent = [Message(b"%d" % number) for number in range(500)]
        client.produce(servers, topic, sent, Sending(is_idempotent=True, batch_bytes=200))
        assert read_back(servers, topic, len(sent)) == sent


class TestProducingFromALibrary:
    needs: ClassVar = ("produce", "timestamps")

    def test_offsets_are_reported_and_timestamps_kept(
        self, client: Client, servers: str, topic: str
    ) -> None:
        sent = [Message(b"%d" % n, timestamp_ms=1_600_000_000_000 + n) for n in range(10)]
        assert client.produce(servers, topic, sent) == list(range(10))
        received = read_back(servers, topic, 10)
        assert [m.timestamp_ms for m in received] == [m.timestamp_ms for m in sent]

    def test_many_records_in_large_batches_over_all_partitions(
        self, client: Client, servers: str, topic: str
    ) -> None:
        sent = [Message(b"%06d" % n * 50, partition=n % 4) for n in range(4_000)]
        how = Sending(compression="gzip", linger_ms=20, batch_bytes=500_000)
        client.produce(servers, topic, sent, how)
        assert read_back(servers, topic, len(sent)) == by_partition(sent)

    def test_record_above_the_limit_of_the_topic_is_refused(
        self, client: Client, servers: str, topic: str
    ) -> None:
        LibrdkafkaAdmin(servers).set_topic_config(topic, "max.message.bytes", "1000")
        with pytest.raises(Refused, match=r"msgsizetoolarge|messagesizetoolarge|recordtoolarge"):
            client.produce(servers, topic, [Message(b"x" * 2_000)])

    def test_record_without_a_key_is_refused_by_a_compacted_topic(
        self, client: Client, servers: str, topic: str
    ) -> None:
        LibrdkafkaAdmin(servers).set_topic_config(topic, "cleanup.policy", "compact")
        # aiokafka does not know the name of INVALID_RECORD
        with pytest.raises(Refused, match=r"invalidrecord|^unknown$"):
            client.produce(servers, topic, [Message(b"no key")])
        assert client.produce(servers, topic, [Message(b"value", b"key")]) == [0]

    def test_regression_min_insync_replicas_asks_for_no_more_than_there_are(
        self, client: Client, servers: str, topic: str
    ) -> None:
        LibrdkafkaAdmin(servers).set_topic_config(topic, "min.insync.replicas", "2")
        assert client.produce(servers, topic, [Message(b"value")]) == [0]
