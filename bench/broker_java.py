"""Our broker compared with Apache Kafka: throughput and CPU, with Kafka's own perf tools.

The Java producer sends batches of at most 16 KB, a sixtieth of librdkafka's, and itself takes three
quarters of two cores. The goals for producing are therefore in `broker`.
"""

from collections.abc import Iterator

from bench.java_client import JavaClient
from bench.loads import Limits, compare, loads
from bench.report import Comparison
from bench.servers import both_brokers


def run() -> Iterator[Comparison]:
    """Run the loads of `bench broker`."""
    with both_brokers() as (ours, kafka):
        all_loads = loads(1_500_000, 400_000)
        yield from compare(
            ours, kafka, JavaClient(), all_loads, Limits(consume=1), rounds=3, reads=3
        )
