"""One broker of ours beside one of Apache Kafka: rates, CPU and memory, by librdkafka.

Reading has its limit in `broker_java`. Here it shows the client more than the brokers: of 100 B
records it needs nine tenths of two cores, and the more the further it can read ahead, since its two
threads then wait for each other at malloc, and find in memory what they would have had in a cache.
"""

from collections.abc import Iterator

from bench.librdkafka import LibrdkafkaClient
from bench.loads import Limits, compare, loads
from bench.report import Comparison
from bench.servers import both_brokers


def run() -> Iterator[Comparison]:
    """Every load on both, in turns; then what is resident after all of it."""
    with both_brokers() as (ours, kafka):
        yield Comparison("memory idle", ours.resident_mb(), kafka.resident_mb(), "Kafka", "MB")
        yield Comparison("memory idle", ours.resident_mb(), 60, "limit", "MB", goal=1)
        limits = Limits(produce=1, produce_cpu=0.5)
        # Many short rounds: a machine's pace drifts by more than the brokers differ.
        all_loads = loads(2_000_000, 400_000)
        client = LibrdkafkaClient()
        yield from compare(ours, kafka, client, all_loads, limits, rounds=11, reads=3)
        yield Comparison("memory after", ours.resident_mb(), kafka.resident_mb(), "Kafka", "MB")
        yield Comparison("memory after", ours.resident_mb(), 150, "limit", "MB", goal=1)
