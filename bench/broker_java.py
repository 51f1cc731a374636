"""One broker of ours beside one of Apache Kafka: rates and CPU, by Kafka's own perf tools.

Their producer sends batches of 16 KB at most, sixty times smaller than librdkafka's, and takes
three quarters of two cores itself: producing has its limits in `broker`.
"""

from collections.abc import Iterator

from bench.java_client import JavaClient
from bench.loads import Limits, compare, loads
from bench.report import Comparison
from bench.servers import both_brokers


def run() -> Iterator[Comparison]:
    """The loads of `bench broker`."""
    with both_brokers() as (ours, kafka):
        all_loads = loads(1_500_000, 400_000)
        yield from compare(
            ours, kafka, JavaClient(), all_loads, Limits(consume=1), rounds=3, reads=3
        )
