"""Large requests and heavy batches do not hold the event loop, and are answered as small ones are.

A metered broker reports every long turn of its loop, in CPU time; see `metered_broker`.
"""

import re
import socket
from collections.abc import Iterator

import pytest

from broker.api.large_requests import LARGE_BYTES
from broker.api.table import TABLE
from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.compiler import MAX_ELEMENTS
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.protocol.primitives import uvarint
from broker.records.batch import iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec
from tests.api.requests import create_topic
from tests.support.broker import RunningBroker, running_metered_broker
from tests.support.hostile_requests import ENDS_THE_BROKER, hostile_requests, tagged_fields
from tests.support.metered_broker import LINE
from tests.support.wire import WireClient, request_frame

FRAME_BYTES = 80_000
LONGEST_TURN_MS = 150
NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def metered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose long turns are in its log."""
    directory = tmp_path_factory.mktemp("metered")
    with running_metered_broker(directory, broker_id=1) as running:
        yield running
        assert "Traceback" not in running.output()


class Turns:
    """The long turns since this was created."""

    def __init__(self, broker: RunningBroker) -> None:
        self._broker = broker
        self._seen = len(broker.output())

    def too_long(self) -> list[tuple[str, ...]]:
        """Those above the limit, with their place."""
        found: list[tuple[str, str]] = re.findall(LINE, self._broker.output()[self._seen :])
        return [turn for turn in found if int(turn[0]) > LONGEST_TURN_MS]


def answer(address: str, frame: bytes) -> bytes | None:
    """The response to a frame with its size; None if the connection was closed."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(frame)
        with connection.makefile("rb") as stream:
            size = stream.read(4)
            return stream.read(int.from_bytes(size, "big")) if size else None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_array_of_any_api_holds_the_loop(metered: RunningBroker) -> None:
    frames = [tagged_fields(100_000)]
    for key in sorted(TABLE):
        if key not in ENDS_THE_BROKER:
            frames += hostile_requests(ApiKey(key), FRAME_BYTES, MAX_ELEMENTS)
    slow = {}
    for hostile in frames:
        turns = Turns(metered)
        answer(metered.bootstrap_servers, hostile.frame)
        if found := turns.too_long():
            slow[str(hostile)] = found
    assert slow == {}
    assert metered.server.process.poll() is None


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("api_key", "array"),
    [
        (ApiKey.LEADER_AND_ISR, "topic_states"),
        (ApiKey.UPDATE_METADATA, "topic_states"),
        (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "users"),
        (ApiKey.ALTER_CLIENT_QUOTAS, "entries.entity"),
    ],
)
def test_regression_request_of_megabytes_does_not_hold_the_loop(
    metered: RunningBroker, api_key: ApiKey, array: str
) -> None:
    """Their turns took 60 to 240 ms for 3 MB, and grew with the request."""
    (hostile,) = hostile_requests(api_key, 6_000_000, MAX_ELEMENTS, array=array)
    turns = Turns(metered)
    answer(metered.bootstrap_servers, hostile.frame)
    assert turns.too_long() == []


def test_request_in_chunks_is_answered_entry_by_entry(metered: RunningBroker) -> None:
    with WireClient(metered.bootstrap_servers) as wire:
        create_topic(wire, "chunks", num_partitions=3)
        wanted = [("chunks", 2), ("a", 1501), ("chunks", 1), ("b", 1), ("chunks", 3), ("c", 700)]
        request = ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=-1)
                        for index in range(count)
                    ],
                )
                for name, count in wanted
            ]
        )
        assert len(request_frame(request, 7)) > LARGE_BYTES
        found = wire.ask(request, 7)
    answered = [(topic.name, len(topic.partitions)) for topic in found.topics]
    assert answered == wanted
    for topic in found.topics:
        assert [one.partition_index for one in topic.partitions] == list(
            range(len(topic.partitions))
        )
        expected = 0 if topic.name == "chunks" else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # As in Kafka, a partition that is named twice in what is handled at once is an error.
        allowed = {expected, ErrorCode.INVALID_REQUEST} if topic.name == "chunks" else {expected}
        assert {one.error_code for one in topic.partitions} <= allowed


def test_more_elements_than_allowed_close_the_connection(metered: RunningBroker) -> None:
    count = MAX_ELEMENTS + 1
    body = b"\0\x0a\0\x04\0\0\0\x01\0\x01x\0" + b"\0" + uvarint(count + 1) + b"\x01" * count + b"\0"
    turns = Turns(metered)
    assert answer(metered.bootstrap_servers, len(body).to_bytes(4, "big") + body) is None
    assert "more than 3,000,000 elements" in metered.output()
    assert turns.too_long() == []


def produce(wire: WireClient, topic: str, batch: bytes) -> int:
    data = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    response = wire.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]), 9)
    return response.responses[0].partition_responses[0].error_code


def read_records(wire: WireClient, topic: str) -> list[tuple[int, bytes | None]]:
    wanted = FetchTopic(topic=topic, partitions=[FetchPartition(partition=0)])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 30, topics=[wanted])
    wanted.partitions[0].partition_max_bytes = 1 << 30  # type: ignore[misc]
    records = wire.ask(request, 11).responses[0].partitions[0].records
    assert isinstance(records, bytes | memoryview)
    return [
        (record.offset, record.value)
        for batch in iterate_batches(memoryview(records))
        for record in batch.records()
    ]


@pytest.mark.parametrize("codec", ["lz4", "gzip", "uncompressed"])
def test_regression_small_batch_with_very_many_records_is_recompressed_off_the_loop(
    metered: RunningBroker, codec: str
) -> None:
    """2 million records in 1.5 KB of zstd stopped every client for 36 s."""
    count = 200_000
    rows = [(n, NOW_MS, b"k", b"v", ()) for n in range(count)]
    bomb = build_batch(rows, BatchSettings(codec=Codec.ZSTD))
    topic = f"bomb-{codec}"
    with WireClient(metered.bootstrap_servers) as wire:
        configs = {"compression_type": codec, "max_message_bytes": "100000000"}
        create_topic(wire, topic, 1, **configs)
        turns = Turns(metered)
        assert produce(wire, topic, bomb) == 0
        assert turns.too_long() == []
        found = read_records(wire, topic)
    assert found == [(n, b"v") for n in range(count)]


def test_batch_that_decompresses_to_too_much_is_refused(metered: RunningBroker) -> None:
    """300 MiB in some kilobytes; 256 MiB are allowed."""
    bomb = build_batch(
        [(0, NOW_MS, b"k", bytes(300 * 1024 * 1024), ())], BatchSettings(codec=Codec.ZSTD)
    )
    with WireClient(metered.bootstrap_servers) as wire:
        create_topic(wire, "too-much")
        turns = Turns(metered)
        assert produce(wire, "too-much", bomb) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert turns.too_long() == []


def test_batches_before_and_after_a_heavy_one_keep_their_order(metered: RunningBroker) -> None:
    large = [(n, NOW_MS, b"k", bytes(1000), ()) for n in range(3000)]
    batches = [
        build_batch([(0, NOW_MS, b"k", b"first", ())]),
        build_batch(large, BatchSettings(codec=Codec.ZSTD)),
        build_batch([(0, NOW_MS, b"k", b"last", ())]),
    ]
    with WireClient(metered.bootstrap_servers) as wire:
        create_topic(wire, "order")
        for batch in batches:
            data = TopicProduceData(
                name="order", partition_data=[PartitionProduceData(index=0, records=batch)]
            )
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
            frame = request_frame(request, 9)
            wire.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        for _ in batches:
            assert wire.receive() is not None
        found = read_records(wire, "order")
    assert (found[0], found[-1]) == ((0, b"first"), (3001, b"last"))
    assert len(found) == 3002
