"""Our broker compared with Apache Kafka over TLS: throughput and CPU, with librdkafka.

Both have the same certificate (ECDSA, P-256) and negotiate TLS 1.3. CPU counts the broker's process
only; the client encrypts as well, in a process of its own.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.librdkafka import LibrdkafkaClient
from bench.loads import Limits, Load, LoadClient, compare
from bench.report import Comparison
from bench.servers import both_brokers
from tests.support.processes import free_port
from tests.support.secured import Certificates

LOADS = [
    Load(1000, 400_000, 6, "all"),
    Load(1000, 400_000, 1, "1"),
    Load(100, 2_000_000, 6, "all"),
]
ROUNDS = 7
READS = 2


class _OverTls:
    """Uses the TLS listeners of brokers that are named by their plaintext listeners."""

    def __init__(self, client: LoadClient) -> None:
        self._client = client
        self.addresses: dict[str, str] = {}

    def produce(self, servers: str, topic: str, load: Load) -> float:
        """Part of LoadClient."""
        return self._client.produce(self.addresses[servers], topic, load)

    def consume(self, servers: str, topic: str, load: Load) -> float:
        """Part of LoadClient."""
        return self._client.consume(self.addresses[servers], topic, load)


def run() -> Iterator[Comparison]:
    """Run every load on both brokers in turns."""
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory:
        certificates = Certificates.make(Path(directory))
        own_port, kafka_port = free_port(), free_port()
        client = _OverTls(
            LibrdkafkaClient(
                {"security.protocol": "ssl", "ssl.ca.location": str(certificates.trusted)}
            )
        )
        with both_brokers(
            {"listeners": f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{own_port}"},
            {"more.listeners": f"SSL://127.0.0.1:{kafka_port}"},
            **certificates.settings(),
        ) as (ours, kafka):
            client.addresses = {
                ours.bootstrap_servers: f"127.0.0.1:{own_port}",
                kafka.bootstrap_servers: f"127.0.0.1:{kafka_port}",
            }
            limits = Limits(produce=1, produce_cpu=0.7, consume=1, consume_cpu=0.7)
            yield from compare(ours, kafka, client, LOADS, limits, ROUNDS, READS)
