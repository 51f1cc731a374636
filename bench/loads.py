"""What one broker is measured with, and how what a client saw of two brokers is compared."""

import os
import statistics
from collections.abc import Iterator
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
    """What was seen of one broker under one load, once for each round or read."""

    produced_mb_s: list[float]
    produce_cpu_s: list[float]
    consumed_mb_s: list[float]


def compare(
    ours: MeasuredBroker,
    kafka: MeasuredBroker,
    client: LoadClient,
    all_loads: list[Load],
    limits: Limits,
    rounds: int,
    reads: int,
) -> Iterator[Comparison]:
    """Every load on both, in turns: so many rounds, each read so often; the medians of all."""
    memory = FreeMemory()
    for load in (all_loads[0], all_loads[-1]):
        for number in range(_WARM_UPS):
            _round([ours, kafka], client, load, f"warm-up-{number}", memory, reads)
    for load in all_loads:
        mine, theirs = _Measured([], [], []), _Measured([], [], [])
        for number in range(rounds):
            # Who goes first alternates: the second finds the client's files in memory.
            turns = {ours: mine, kafka: theirs} if number % 2 else {kafka: theirs, ours: mine}
            topic = f"bench-{all_loads.index(load)}-{number}"
            seen = _round(list(turns), client, load, topic, memory, reads)
            for found, more in zip(turns.values(), seen, strict=True):
                for values, new in zip(found, more, strict=True):
                    values += new
        yield from _rows(load, mine, theirs, limits)


def _rows(load: Load, ours: _Measured, kafka: _Measured, limits: Limits) -> Iterator[Comparison]:
    """Medians: a client that shares two cores with the broker is as often lucky as not."""
    for what, unit, goal, mine, theirs, more in (
        ("produce", "MB/s", limits.produce, ours.produced_mb_s, kafka.produced_mb_s, True),
        ("produce CPU", "s", limits.produce_cpu, ours.produce_cpu_s, kafka.produce_cpu_s, False),
        ("consume", "MB/s", limits.consume, ours.consumed_mb_s, kafka.consumed_mb_s, True),
    ):
        middle = statistics.median(mine), statistics.median(theirs)
        yield Comparison(f"{what}: {load}", *middle, "Kafka", unit, goal, more_is_better=more)


def _round(
    brokers: list[MeasuredBroker],
    client: LoadClient,
    load: Load,
    topic: str,
    memory: FreeMemory,
    reads: int,
) -> list[_Measured]:
    """Write to each, then read from each in turns: what slows one read slows the next as well."""
    seen = []
    for broker in brokers:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(topic, load.partitions, 1)])[topic].result(30)
        os.sync()  # what the last one wrote is not written at the cost of this one
        memory.touch()
        cpu = broker.cpu_seconds()
        produced = client.produce(broker.bootstrap_servers, topic, load)
        seen.append(_Measured([produced], [broker.cpu_seconds() - cpu], []))
    os.sync()
    for _ in range(reads):
        for broker, measured in zip(brokers, seen, strict=True):
            measured.consumed_mb_s.append(client.consume(broker.bootstrap_servers, topic, load))
    for broker in brokers:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([topic])[topic].result(30)
    return seen
