"""How near throttled clients get to their quota, on our broker and on Apache Kafka.

Producers and consumers of librdkafka and of Java, all at once, each with a quota of its own. A
client may use the quota of ten seconds at once and then waits until those windows have expired, so
the average is taken over several times the eleven windows.
"""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Timer
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Comparison
from bench.servers import both_brokers
from broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from tests.support.real_kafka import java_command
from tests.support.wire import WireClient

RATE: Final = 1_000_000
ALLOWED_PERCENT: Final = 10
SECONDS: Final = 66
RECORD_BYTES: Final = 1000
PAYLOAD: Final = b"x" * RECORD_BYTES
STORED: Final = "stored"
_JAVA_START_S: Final = 15
_ENDLESS: Final = str(10**9)

Received = list[tuple[float, int]]
"""(time, number of records) of each report."""


def run() -> Iterator[Comparison]:
    """Deviations from the quota, and both rates."""
    clients: dict[str, Callable[[str], Received]] = {
        "librdkafka consumer": _consume,
        "Java consumer": _consume_java,
        "librdkafka producer": _produce,
        "Java producer": _produce_java,
    }
    with both_brokers() as (ours, kafka), ThreadPoolExecutor(2 * len(clients)) as threads:
        addresses = (ours.bootstrap_servers, kafka.bootstrap_servers)
        list(threads.map(_prepare, addresses))
        running = {
            name: [threads.submit(client, address) for address in addresses]
            for name, client in clients.items()
        }
        for name, both in running.items():
            own, theirs = (_rate(future.result()) for future in both)
            yield Comparison(f"{name}: rate", own, theirs, "Kafka", "B/s")
            percent = abs(own - RATE) / RATE * 100
            yield Comparison(f"{name}: off its quota", percent, ALLOWED_PERCENT, "limit", "%", 1)


def _prepare(address: str) -> None:
    """Store more than consumers may read, and set the quotas."""
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics(
        [NewTopic(name, 1, 1) for name in (STORED, "librdkafka", "java")]
    ).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": address, "batch.size": 16_384})
    for _ in range(RATE * (SECONDS + 20) // RECORD_BYTES):
        _send(producer, STORED)
    assert producer.flush(120) == 0
    entries = [
        RequestEntryData(
            entity=[EntityData(entity_type="client-id", entity_name=client)],
            ops=[OpData(key=key, value=RATE)],
        )
        for client, key in (
            ("librdkafka-consumer", "consumer_byte_rate"),
            ("perf-consumer-client", "consumer_byte_rate"),
            ("librdkafka-producer", "producer_byte_rate"),
            ("java-producer", "producer_byte_rate"),
        )
    ]
    with WireClient(address) as wire:
        results = wire.ask(AlterClientQuotasRequest(entries=entries), 1).entries
    assert not any(result.error_code for result in results)
    time.sleep(2)  # brokers apply quotas a moment later, and do not say when


def _send(producer: Producer, topic: str, on_delivery: Callable[..., None] | None = None) -> None:
    while True:
        try:
            producer.produce(topic, PAYLOAD, on_delivery=on_delivery)
        except BufferError:
            producer.poll(0.05)
        else:
            producer.poll(0)
            return


def _rate(received: Received) -> float:
    """Bytes per second from the first bytes on."""
    first_s = received[0][0]
    num = sum(count for at, count in received if at <= first_s + SECONDS)
    return num * RECORD_BYTES / SECONDS


def _consume(address: str) -> Received:
    settings = {
        "bootstrap.servers": address,
        "client.id": "librdkafka-consumer",
        "group.id": "librdkafka",
        "auto.offset.reset": "earliest",
        "queued.max.messages.kbytes": 2000,
    }
    consumer, received = Consumer(settings), Received()
    consumer.subscribe([STORED])
    while not received or time.monotonic() < received[0][0] + SECONDS:
        messages = consumer.consume(500, 0.2)
        if num := sum(message.error() is None for message in messages):
            received.append((time.monotonic(), num))
    consumer.close()
    return received


def _produce(address: str) -> Received:
    received = Received()

    def on_delivery(error: object, message: object) -> None:
        if error is None:
            received.append((time.monotonic(), 1))

    settings = {
        "bootstrap.servers": address,
        "client.id": "librdkafka-producer",
        "batch.size": 16_384,
        "queue.buffering.max.kbytes": 1000,  # what waits in the client does not count
    }
    producer = Producer(settings)
    while not received or time.monotonic() < received[0][0] + SECONDS:
        _send(producer, "librdkafka", on_delivery)
    producer.purge()
    return received


def _consume_java(address: str) -> Received:
    """ConsumerPerformance prints the number of all records so far, as the fifth field."""
    command = java_command(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", address, "--topic", STORED, "--messages", _ENDLESS),
        *("--timeout", "30000", "--show-detailed-stats", "--reporting-interval", "500"),
        heap="128m",
    )
    with _running(command, stdout=subprocess.PIPE) as process:
        lines = [
            (time.monotonic(), line)
            for line in process.stdout or ()
            if re.match(r"\d{4}-\d\d-\d\d", line)
        ]
    return _differences([(at, int(line.split(", ")[4])) for at, line in lines])


def _produce_java(address: str) -> Received:
    """ProducerPerformance reports too seldom: the log end offset says how much has arrived."""
    command = java_command(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "java", "--num-records", _ENDLESS, "--record-size", str(RECORD_BYTES)),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={address}"),
        *("client.id=java-producer", "buffer.memory=1000000", "max.block.ms=120000"),
        heap="128m",
    )
    reader = Consumer({"bootstrap.servers": address, "group.id": "offsets"})
    totals: list[tuple[float, int]] = []
    with _running(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            _, end_offset = reader.get_watermark_offsets(TopicPartition("java", 0), 10)
            if end_offset:
                totals.append((time.monotonic(), end_offset))
            time.sleep(0.2)
    reader.close()
    return _differences(totals)


@contextmanager
def _running(command: list[str], stdout: int) -> Iterator["subprocess.Popen[str]"]:
    """A process that is ended after the measurement."""
    with subprocess.Popen(command, stdout=stdout, text=True) as process:
        end = Timer(SECONDS + _JAVA_START_S, process.kill)
        end.start()
        try:
            yield process
        finally:
            end.cancel()
            process.kill()


def _differences(totals: Received) -> Received:
    before = [0, *(total for _, total in totals)]
    return [(at, total - old) for (at, total), old in zip(totals, before, strict=False)]
