"""Quotas on a running broker, with librdkafka and single requests."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from broker.errors import ErrorCode
from broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker.protocol.schema import Request
from tests.api.requests import create_topic, fetch_request, produce_request
from tests.log.support import batch
from tests.support.broker import RunningBroker, running_broker
from tests.support.cluster import wait_until
from tests.support.wire import WireClient, read_response, request_frame

RATE = 200_000
"""Bytes per second of throttled producers."""
CONSUMER_RATE = 50_000
"""Bytes per second of throttled consumers."""
FETCHED_BYTES = 9_300
"""Bytes of a fetch: three records of 3,000 bytes, and a part of the next that does not count."""
NO_DELAY: dict[str, object] = {"group_initial_rebalance_delay_ms": 0}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """With two windows of a second, so that what is free at the start is little."""
    settings = {
        "quota_window_num": 2,
        "controller_quota_window_num": 2,
        "group_initial_rebalance_delay_ms": 0,
        "offsets_topic_num_partitions": 1,
    }
    with running_broker(tmp_path_factory.mktemp("quotas"), **settings) as running:
        yield running
        assert "Traceback" not in running.output()


@pytest.fixture
def wire(broker: RunningBroker) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap_servers) as client:
        yield client


def set_quota(broker: RunningBroker, key: str, value: float | None, **entity: str | None) -> None:
    """Set or remove a quota, and wait until it is in effect."""
    request = AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[
                    EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
                    for kind, name in entity.items()
                ],
                ops=[OpData(key=key, value=value or 0.0, remove=value is None)],
            )
        ]
    )
    before = broker.output().count("changed quotas")
    with WireClient(broker.bootstrap_servers) as admin:
        (result,) = admin.ask(request, 1).entries
    assert result.error_code == ErrorCode.NONE, result
    wait_until(lambda: broker.output().count("changed quotas") > before, "the quota is applied")


def ask_as(wire: WireClient, client_id: str, request: Request[Any], version: int) -> Any:
    wire.send(request_frame(request, version, client_id))
    frame = wire.receive()
    assert frame is not None
    return read_response(frame, request.api_key, version)


@dataclass
class Transfer:
    """Bytes by the time at which they were acknowledged or received."""

    received: list[tuple[float, int]] = field(default_factory=list)

    def add(self, num_bytes: int) -> None:
        self.received.append((time.monotonic(), num_bytes))

    def rate(self, skipped_s: float) -> float:
        """Bytes per second, after the first seconds."""
        start = self.received[0][0] + skipped_s
        late = [(at, size) for at, size in self.received if at >= start]
        first, last = late[0][0], late[-1][0]
        return sum(size for _, size in late[1:]) / (last - first)

    @property
    def _longest_pause(self) -> int:
        """The position in `received` before which the longest pause was."""
        times = [at for at, _ in self.received]
        return max(range(1, len(times)), key=lambda number: times[number] - times[number - 1])

    @property
    def bytes_before_longest_pause(self) -> int:
        """How much was received before the client was throttled for longest."""
        return sum(size for _, size in self.received[: self._longest_pause])

    @property
    def end_of_longest_pause_s(self) -> float:
        """When it went on after that, in seconds since the first bytes."""
        return self.received[self._longest_pause][0] - self.received[0][0]


def assert_keeps(limit: float, rate: float) -> None:
    """The quota is the upper limit; how near a client gets to it depends on the machine's load."""
    assert 0.3 * limit < rate < 1.2 * limit


def produce_for(broker: RunningBroker, client_id: str, seconds: float, done: Transfer) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": client_id,
            "batch.size": 10_000,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 100,
        }
    )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            producer.produce(
                f"topic-of-{client_id}",
                b"x" * 5_000,
                on_delivery=lambda error, message: done.add(len(message.value() or b"")),
            )
        except BufferError:
            producer.poll(0.05)
        producer.poll(0)
    assert producer.flush(30) == 0


@pytest.mark.slow
def test_throttled_producer_keeps_its_rate_and_others_are_not_slowed(
    broker: RunningBroker, wire: WireClient
) -> None:
    for client_id in ("slow", "fast"):
        create_topic(wire, f"topic-of-{client_id}")
    set_quota(broker, "producer_byte_rate", RATE, client_id="slow")
    slow, fast = Transfer(), Transfer()
    thread = threading.Thread(target=produce_for, args=(broker, "slow", 6.0, slow))
    thread.start()
    produce_for(broker, "fast", 1.0, fast)
    thread.join()
    set_quota(broker, "producer_byte_rate", None, client_id="slow")
    assert_keeps(RATE, slow.rate(skipped_s=2))
    assert fast.rate(skipped_s=0) > 5 * RATE


@pytest.mark.slow
def test_throttled_consumer_keeps_its_rate(tmp_path: Path) -> None:
    """With Kafka's eleven windows: the consumer gets ten seconds' worth, and waits for eleven.

    `tests/quota` has the same on virtual time, over minutes.
    """
    with (
        running_broker(tmp_path, offsets_topic_num_partitions=1, **NO_DELAY) as broker,
        WireClient(broker.bootstrap_servers) as wire,
    ):
        create_topic(wire, "stored")
        records = batch(b"x" * 3_000)
        for _ in range(210):
            wire.ask(produce_request("stored", records), 9)
        set_quota(broker, "consumer_byte_rate", CONSUMER_RATE, client_id="reader")
        done = consume(broker, num_records=190)
    sent = done.bytes_before_longest_pause * FETCHED_BYTES / (3 * 3_000)
    rate = sent / done.end_of_longest_pause_s
    assert 0.8 * CONSUMER_RATE < rate < 1.1 * CONSUMER_RATE  # a loaded machine is slower


def consume(broker: RunningBroker, num_records: int) -> Transfer:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "reader",
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": FETCHED_BYTES,
        }
    )
    consumer.subscribe(["stored"])
    done, end = Transfer(), time.monotonic() + 40
    while time.monotonic() < end and len(done.received) < num_records:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            done.add(len(message.value() or b""))
    consumer.close()
    return done


def test_response_comes_before_the_throttle_time_is_over(
    broker: RunningBroker, wire: WireClient
) -> None:
    """The throttle time is longer than the client waits for a response."""
    create_topic(wire, "answered")
    set_quota(broker, "producer_byte_rate", 100.0, client_id="answered")
    request = produce_request("answered", batch(b"x" * 15_000))
    assert ask_as(wire, "answered", request, 9).throttle_time_ms > 60_000
    set_quota(broker, "producer_byte_rate", None, client_id="answered")


def test_next_request_waits_for_the_throttle_time(broker: RunningBroker, wire: WireClient) -> None:
    create_topic(wire, "muted")
    set_quota(broker, "producer_byte_rate", 10_000.0, user=None)
    request = produce_request("muted", batch(b"x" * 15_000))
    started = time.monotonic()
    throttle_ms = ask_as(wire, "any", request, 9).throttle_time_ms
    assert throttle_ms >= 400
    ask_as(wire, "any", ApiVersionsRequest(), 0)
    assert time.monotonic() - started >= throttle_ms / 1000
    set_quota(broker, "producer_byte_rate", None, user=None)


def test_acks_0_is_muted_too(broker: RunningBroker, wire: WireClient) -> None:
    create_topic(wire, "unacknowledged")
    set_quota(broker, "producer_byte_rate", 10_000.0, client_id="silent")
    request = produce_request("unacknowledged", batch(b"x" * 15_000), acks=0)
    started = time.monotonic()
    wire.send(request_frame(request, 9, "silent"))
    ask_as(wire, "other", ApiVersionsRequest(), 0)
    assert time.monotonic() - started >= 0.4
    set_quota(broker, "producer_byte_rate", None, client_id="silent")


def test_throttled_fetch_is_empty_and_brings_everything_later(
    broker: RunningBroker, wire: WireClient
) -> None:
    create_topic(wire, "fetched")
    records = batch(b"x" * 9_000)
    for _ in range(3):
        wire.ask(produce_request("fetched", records), 9)
    set_quota(broker, "consumer_byte_rate", 10_000.0, client_id="reading")
    offset, num_empty = 0, 0
    while offset < 3:
        request = fetch_request("fetched", offset, max_bytes=10_000, partition_max_bytes=10_000)
        response = ask_as(wire, "reading", request, 12)
        assert response.error_code == ErrorCode.NONE
        if response.throttle_time_ms:
            assert response.responses == []
            num_empty += 1
        else:
            (topic,) = response.responses
            offset += len(topic.partitions[0].records) // len(records)
    assert num_empty >= 1
    set_quota(broker, "consumer_byte_rate", None, client_id="reading")


def test_throttled_fetch_keeps_its_session(broker: RunningBroker, wire: WireClient) -> None:
    create_topic(wire, "in-session")
    wire.ask(produce_request("in-session", batch(b"x" * 9_000)), 9)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=20_000)
    topics = [FetchTopic(topic="in-session", partitions=[partition])]
    opening = FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=0, topics=topics)
    opened = ask_as(wire, "session", opening, 12)
    assert opened.session_id
    set_quota(broker, "consumer_byte_rate", 5_000.0, client_id="session")
    for epoch in (1, 2, 3, 4):
        again = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_id=opened.session_id,
            session_epoch=epoch,
            topics=topics,
        )
        response = ask_as(wire, "session", again, 12)
        assert (response.error_code, response.session_id) == (0, opened.session_id)
        assert bool(response.throttle_time_ms) != bool(response.responses)
    set_quota(broker, "consumer_byte_rate", None, client_id="session")


def test_followers_are_exempt(broker: RunningBroker, wire: WireClient) -> None:
    set_quota(broker, "consumer_byte_rate", 1.0, client_id="follower")
    set_quota(broker, "request_percentage", 0.0001, client_id="follower")
    request = fetch_request("fetched-by-broker", replica_id=99)
    for _ in range(3):
        assert ask_as(wire, "follower", request, 12).throttle_time_ms == 0
    for key in ("consumer_byte_rate", "request_percentage"):
        set_quota(broker, key, None, client_id="follower")


def test_request_percentage_throttles_at_most_a_window(
    broker: RunningBroker, wire: WireClient
) -> None:
    set_quota(broker, "request_percentage", 0.001, client_id="busy")
    delays = [ask_as(wire, "busy", ApiVersionsRequest(), 1).throttle_time_ms for _ in range(2)]
    assert 0 < max(delays) <= 1000
    set_quota(broker, "request_percentage", None, client_id="busy")


def create(name: str, num_partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=num_partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def test_controller_mutations_are_refused_while_the_bucket_is_overdrawn(
    broker: RunningBroker,
) -> None:
    set_quota(broker, "controller_mutation_rate", 1.0, client_id="admin")
    address = broker.bootstrap_servers
    with WireClient(address) as first:
        response = ask_as(first, "admin", create("mutation-1", 5), 7)
        assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 0)
    growing = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="mutation-1", count=6, assignments=None)],
        timeout_ms=10_000,
    )
    deleting = DeleteTopicsRequest(topics=[DeleteTopicState(name="mutation-1")], timeout_ms=10_000)
    for request, version, answers in (
        (create("mutation-2", 1), 7, "topics"),
        (growing, 3, "results"),
        (deleting, 6, "responses"),
    ):
        with WireClient(address) as next_one:  # the connections before are muted
            response = ask_as(next_one, "admin", request, version)
        (answer,) = getattr(response, answers)
        assert answer.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert response.throttle_time_ms > 0
    with WireClient(address) as old:  # versions that do not know the error are served
        response = ask_as(old, "admin", create("mutation-3", 1), 5)
        assert response.topics[0].error_code == ErrorCode.NONE
        assert response.throttle_time_ms > 0
    set_quota(broker, "controller_mutation_rate", None, client_id="admin")


def test_connections_beyond_the_rate_of_an_address_are_closed_after_a_delay(
    broker: RunningBroker,
) -> None:
    set_quota(broker, "connection_creation_rate", 3.0, ip="127.0.0.1")
    started, num_closed = time.monotonic(), 0
    for _ in range(12):
        with WireClient(broker.bootstrap_servers) as client:
            client.send(request_frame(ApiVersionsRequest(), 0))
            try:
                num_closed += client.receive() is None
            except OSError:
                num_closed += 1
    elapsed_s = time.monotonic() - started
    assert num_closed >= 1
    assert 12 - num_closed <= 3 * (elapsed_s + 1) + 1
    while True:  # the request that removes the quota needs a connection too
        try:
            set_quota(broker, "connection_creation_rate", None, ip="127.0.0.1")
            return
        except AssertionError:
            time.sleep(0.3)
