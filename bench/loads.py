"""What one broker is measured with, and how what a client saw of two brokers is compared."""

import os
import statistics
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from confluent_kafka.admin import AdminClient, NewTopic

from bench.free_memory import FreeMemory
from bench.report import Comparison
from bench.servers import MeasuredBroker

_WARM_UPS = 4
"""Java compiles what it often runs: its third round of a load costs half of the first."""


class Load(NamedTuple):
    """What is sent and read."""

    record_bytes: int
    records: int
    partitions: int
    acks: str

    @property
    def megabytes(self) -> float:
        """All of it."""
        return self.record_bytes * self.records / 2**20

    def __str__(self) -> str:
        return f"{self.record_bytes} B, {self.partitions} partitions, acks={self.acks}"


def loads(small_records: int, large_records: int) -> list[Load]:
    """Each combination that was promised a limit, with so many records of 100 B and of 1 KB."""
    return [
        Load(size, records, partitions, acks)
        for size, records in ((100, small_records), (1000, large_records))
        for partitions in (1, 6)
        for acks in ("1", "all")
    ]


class LoadClient(Protocol):
    """A client that sends loads and reads them again, at so many MB/s."""

    def produce(self, servers: str, topic: str, load: Load) -> float:
        """Send the load."""

    def consume(self, servers: str, topic: str, load: Load) -> float:
        """Read it from the beginning."""


class Limits(NamedTuple):
    """The ratios that were promised, if any were."""

    produce: float | None = None
    produce_cpu: float | None = None
    consume: float | None = None


class _Measured(NamedTuple):
    produced_mb_s: float
    produce_cpu_s: float
    consumed_mb_s: float


def compare(
    ours: MeasuredBroker,
    kafka: MeasuredBroker,
    client: LoadClient,
    all_loads: list[Load],
    limits: Limits,
    rounds: int,
) -> Iterator[Comparison]:
    """Every load on both, in turns; the medians of so many rounds."""
    memory = FreeMemory()
    for load in (all_loads[0], all_loads[-1]):
        for number in range(_WARM_UPS):
            for broker in (ours, kafka):
                _round(broker, client, load, f"warm-up-{number}", memory)
    for load in all_loads:
        measured: dict[MeasuredBroker, list[_Measured]] = {ours: [], kafka: []}
        for number in range(rounds):
            # Who goes first alternates: the second finds the client's files in memory.
            for broker in (ours, kafka) if number % 2 else (kafka, ours):
                topic = f"bench-{all_loads.index(load)}-{number}"
                measured[broker].append(_round(broker, client, load, topic, memory))
        yield from _rows(load, _typical(measured[ours]), _typical(measured[kafka]), limits)


def _rows(load: Load, ours: _Measured, kafka: _Measured, limits: Limits) -> Iterator[Comparison]:
    for what, unit, goal, mine, theirs, more in (
        ("produce", "MB/s", limits.produce, ours.produced_mb_s, kafka.produced_mb_s, True),
        ("produce CPU", "s", limits.produce_cpu, ours.produce_cpu_s, kafka.produce_cpu_s, False),
        ("consume", "MB/s", limits.consume, ours.consumed_mb_s, kafka.consumed_mb_s, True),
    ):
        yield Comparison(f"{what}: {load}", mine, theirs, "Kafka", unit, goal, more_is_better=more)


def _typical(rounds: Iterable[_Measured]) -> _Measured:
    """Medians: a client that shares two cores with the broker is as often lucky as not."""
    return _Measured(*map(statistics.median, zip(*rounds, strict=True)))


def _round(
    broker: MeasuredBroker, client: LoadClient, load: Load, topic: str, memory: FreeMemory
) -> _Measured:
    servers = broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, load.partitions, 1)])[topic].result(30)
    os.sync()  # what the last one wrote is not written at the cost of this one
    memory.touch()
    cpu = broker.cpu_seconds()
    produced = client.produce(servers, topic, load)
    cpu = broker.cpu_seconds() - cpu
    consumed = client.consume(servers, topic, load)
    admin.delete_topics([topic])[topic].result(30)
    return _Measured(produced, cpu, consumed)
