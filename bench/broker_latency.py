"""End-to-end latency at 2,000 records/s: our broker and Apache Kafka, with librdkafka."""

import statistics
import time
from collections.abc import Iterator
from multiprocessing import get_context

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.report import Comparison
from bench.servers import both_brokers

RATE = 2000
SECONDS = 8
WARM_UP = RATE * 2
TOPIC = "latency"


def run() -> Iterator[Comparison]:
    """Run both in turns, long enough for Java to warm up; report each one's best median and p99."""
    with both_brokers() as (ours, kafka):
        for broker in (ours, kafka):
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        rounds = [
            [_latencies_ms(broker.bootstrap_servers) for broker in (ours, kafka)] for _ in range(6)
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
    """Latencies between one producer and one consumer that read the same clock.

    Each runs in its own process: in one process they would contend for the interpreter lock. Both
    sleep when they have nothing to do.
    """
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

    sender = get_context("spawn").Process(target=_send, args=(bootstrap_servers, total))
    sender.start()
    while len(latencies) < total:
        message = consumer.poll(30)
        assert message is not None
        sent = float(message.value() or b"0")
        latencies.append((time.perf_counter() - sent) * 1000)
    sender.join()
    consumer.close()
    return latencies[WARM_UP:]


def _send(bootstrap_servers: str, total: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "acks": "1"})
    begin = time.perf_counter()
    for number in range(total):
        producer.poll(0)
        time.sleep(max(0.0, begin + number / RATE - time.perf_counter()))
        producer.produce(TOPIC, repr(time.perf_counter()).encode().ljust(100))
    producer.flush(30)
