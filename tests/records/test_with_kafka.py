"""Apache Kafka as the reference: it accepts our batches and converts like us."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.records.batch import (
    Batch,
    iterate_batches,
)
from broker.records.builder import BatchSettings, build_batch
from broker.records.convert import down_convert, up_convert
from broker.records.layout import Codec, TimestampType
from broker.records.legacy import build_messages, read_crcs
from broker.records.record import RecordTuple
from tests.records.wire import RecordsClient
from tests.support.batches import assign_offset_and_epoch, set_max_timestamp
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

# The newest versions that are not flexible; Produce 2 and Fetch 3 are the last of format 1.
PRODUCE, FETCH = 8, 11
OLD_CODECS = [codec for codec in Codec if codec is not Codec.ZSTD]
FETCH_BY_MAGIC = {0: 1, 1: 3}
PRODUCE_BY_MAGIC = {0: 1, 1: 2}
UNSUPPORTED_COMPRESSION_TYPE = 76
NOW = 1_700_000_000_000

# Enough for several blocks of every codec.
RECORDS: list[RecordTuple] = [
    (
        number,
        NOW + number % 7,
        None if number % 5 == 0 else b"key-%d" % (number % 3),
        None if number % 11 == 0 else b"value %d " % number * (number % 40),
        (("header", b"%d" % number), ("null", None)) if number % 4 == 0 else (),
    )
    for number in range(2_000)
]


@pytest.fixture
def wire(real_kafka: RealKafka) -> Iterator[RecordsClient]:
    with RecordsClient(real_kafka.brokers[0]) as connection:
        yield connection


@pytest.mark.parametrize("codec", Codec)
def test_kafka_keeps_our_batches_as_we_stamp_them(wire: RecordsClient, codec: Codec) -> None:
    topic = f"records-keep-{codec.name}"
    wire.create_topic(topic)
    batch = build_batch(RECORDS, BatchSettings(codec=codec))

    offsets = []
    for _ in range(2):
        result = wire.produce(topic, batch, PRODUCE)  # Kafka decompresses and checks every record
        assert (result.error_code, result.record_errors) == (0, [])
        offsets.append(result.base_offset)

    error, stored = wire.fetch(topic, FETCH)
    assert offsets == [0, len(RECORDS)]
    assert error == 0
    assert stored == b"".join(stamped(batch, offset) for offset in offsets)


def write(wire: RecordsClient, topic: str, codec: Codec) -> None:
    batch = build_batch(RECORDS, BatchSettings(codec=codec))
    assert wire.produce(topic, batch, PRODUCE).error_code == 0


def stamped(batch: bytes, offset: int) -> bytes:
    data = bytearray(batch)
    assign_offset_and_epoch(data, 0, offset, 0)
    return bytes(data)


@pytest.mark.parametrize("codec", Codec)
def test_kafka_stamps_append_time_as_we_do(wire: RecordsClient, codec: Codec) -> None:
    topic = f"records-append-time-{codec.name}"
    wire.create_topic(topic, message_timestamp_type="LogAppendTime")
    batch = bytearray(build_batch(RECORDS, BatchSettings(codec=codec)))

    result = wire.produce(topic, bytes(batch), PRODUCE)

    set_max_timestamp(batch, 0, TimestampType.LOG_APPEND_TIME, result.log_append_time_ms)
    assert wire.fetch(topic, FETCH) == (0, stamped(bytes(batch), 0))


@pytest.mark.parametrize("codec", Codec)
def test_librdkafka_reads_our_batches(
    wire: RecordsClient, real_kafka: RealKafka, codec: Codec
) -> None:
    topic = f"records-librdkafka-{codec.name}"
    wire.create_topic(topic)
    write(wire, topic, codec)

    settings = {"bootstrap.servers": real_kafka.bootstrap_servers, "group.id": topic}
    consumer = Consumer(settings | {"check.crcs": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(len(RECORDS), timeout=60)
    consumer.close()

    read = [
        (
            message.offset(),
            message.timestamp()[1],
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
        )
        for message in messages
    ]
    assert read == RECORDS


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("start", [0, 900, 4_500])
def test_kafka_converts_down_as_we_do(
    wire: RecordsClient, real_kafka: RealKafka, magic: int, start: int
) -> None:
    topic = f"records-down-{magic}-{start}"
    wire.create_topic(topic)
    for codec in OLD_CODECS:
        write(wire, topic, codec)
    write_transaction(real_kafka, topic)

    offset, answers = start, 0
    while True:
        current_error, current = wire.fetch(topic, FETCH, offset)
        converted_error, converted = wire.fetch(topic, FETCH_BY_MAGIC[magic], offset)
        assert (current_error, converted_error) == (0, 0)
        ours = b"".join(down_convert(iterate_batches(current), magic, offset))
        theirs = list(iterate_batches(converted))
        if not theirs:
            break
        # Kafka's response is never longer than the unconverted log, so the end may be missing.
        assert shown(ours)[: len(theirs)] == shown(converted)
        offset, answers = theirs[-1].next_offset, answers + 1

    assert answers
    assert ours == b""  # only the control batch is left, which old clients do not get
    assert offset == len(OLD_CODECS) * len(RECORDS) + 1


def write_transaction(real_kafka: RealKafka, topic: str) -> None:
    """A committed record, so that the log ends with a control batch."""
    settings = {"bootstrap.servers": real_kafka.bootstrap_servers, "transactional.id": topic}
    producer = Producer(settings)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction", timestamp=NOW)
    producer.commit_transaction(60)


def shown(data: bytes) -> list[object]:
    """Old messages without the compressed bytes and their crc, which depend on the library."""
    return [show(batch) for batch in iterate_batches(data)]


def show(batch: Batch) -> object:
    if batch.codec is Codec.NONE:
        return bytes(batch.view)
    header = batch.header._replace(batch_length=0, crc=0)
    return header, batch.record_tuples(), read_crcs(batch.view)


def test_kafka_too_refuses_to_convert_zstd_down(wire: RecordsClient) -> None:
    topic = "records-down-zstd"
    wire.create_topic(topic)
    write(wire, topic, Codec.ZSTD)

    error, _ = wire.fetch(topic, version=3)

    assert error == UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_kafka_converts_up_as_we_do(wire: RecordsClient, magic: int, codec: Codec) -> None:
    topic = f"records-up-{magic}-{codec.name}"
    wire.create_topic(topic)
    messages = build_messages(RECORDS, magic, codec)

    result = wire.produce(topic, messages, PRODUCE_BY_MAGIC[magic])

    assert result.error_code == 0
    _, stored = wire.fetch(topic, FETCH)
    settings = BatchSettings(codec=codec, partition_leader_epoch=0)
    ours = up_convert(iterate_batches(messages), 0, settings)
    assert shown_current(ours) == shown_current(stored)


def shown_current(data: bytes) -> tuple[object, ...]:
    (batch,) = iterate_batches(data)
    if batch.codec is Codec.NONE:
        return (data,)
    return batch.header._replace(batch_length=0, crc=0), batch.records_data()
