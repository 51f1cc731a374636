"""From produce to consume at 2,000 records a second: ours beside Apache Kafka, by librdkafka."""

import statistics
import threading
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Comparison
from bench.servers import both_brokers

RATE = 2000
SECONDS = 10
WARM_UP = RATE * 2
TOPIC = "latency"


def run() -> Iterator[Comparison]:
    """Both take turns, three times; the best median and p99 of each."""
    with both_brokers() as (ours, kafka):
        for broker in (ours, kafka):
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        rounds = [
            [_latencies_ms(broker.bootstrap_servers) for broker in (ours, kafka)] for _ in range(3)
        ]
        mine, theirs = zip(*rounds, strict=True)
        for what, percentile in (("median", 50), ("p99", 99)):
            yield Comparison(
                f"latency at {RATE:,} records/s, {what}",
                min(_percentile(latencies, percentile) for latencies in mine),
                min(_percentile(latencies, percentile) for latencies in theirs),
                "Kafka",
                "ms",
                goal=1,
            )


def _percentile(latencies: list[float], percentile: int) -> float:
    return statistics.quantiles(latencies, n=100)[percentile - 1]


def _latencies_ms(bootstrap_servers: str) -> list[float]:
    """One producer and one consumer in this process, on one clock."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "latency",
            "fetch.wait.max.ms": 100,
            "fetch.min.bytes": 1,
        }
    )
    place = TopicPartition(TOPIC, 0)
    place.offset = consumer.get_watermark_offsets(place, timeout=30)[1]
    consumer.assign([place])
    total = WARM_UP + RATE * SECONDS
    latencies: list[float] = []

    def receive() -> None:
        while len(latencies) < total:
            message = consumer.poll(10)
            if message is None:
                return
            sent = float(message.value() or b"0")
            latencies.append((time.perf_counter() - sent) * 1000)

    receiver = threading.Thread(target=receive)
    receiver.start()
    _send(bootstrap_servers, total)
    receiver.join()
    consumer.close()
    return latencies[WARM_UP:]


def _send(bootstrap_servers: str, total: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "acks": "1"})
    begin = time.perf_counter()
    for number in range(total):
        while time.perf_counter() < begin + number / RATE:
            producer.poll(0.0005)
        producer.produce(TOPIC, repr(time.perf_counter()).encode().ljust(100))
    producer.flush(30)
