"""Our broker compared with Apache Kafka: throughput, CPU and memory, with librdkafka.

The goal for consuming is in `broker_java`. With librdkafka, consuming measures the client more than
the broker: reading 100 B records takes nine tenths of two cores, and more the further the client
reads ahead, because its two threads then contend for malloc's lock and miss the CPU caches.
"""

from collections.abc import Iterator

from bench.librdkafka import LibrdkafkaClient
from bench.loads import Limits, compare, loads
from bench.report import Comparison
from bench.servers import both_brokers


def run() -> Iterator[Comparison]:
    """Run every load on both brokers in turns, then measure resident memory."""
    with both_brokers() as (ours, kafka):
        yield Comparison("memory idle", ours.resident_mb(), kafka.resident_mb(), "Kafka", "MB")
        yield Comparison("memory idle", ours.resident_mb(), 60, "limit", "MB", goal=1)
        limits = Limits(produce=1, produce_cpu=0.5)
        # Many short rounds: the machine's speed drifts by more than the brokers differ.
        all_loads = loads(2_000_000, 400_000)
        client = LibrdkafkaClient()
        yield from compare(ours, kafka, client, all_loads, limits, rounds=11, reads=3)
        yield Comparison("memory after", ours.resident_mb(), kafka.resident_mb(), "Kafka", "MB")
        yield Comparison("memory after", ours.resident_mb(), 150, "limit", "MB", goal=1)
