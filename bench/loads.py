"""Loads for one broker, and the comparison of two brokers under the same loads."""

import os
import statistics
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from confluent_kafka.admin import AdminClient, NewTopic

from bench.free_memory import FreeMemory
from bench.report import Comparison
from bench.servers import MeasuredBroker

_WARM_UPS = 4
"""Java compiles hot code: its third round of a load costs half of the first."""


class Load(NamedTuple):
    """Records to send and read back."""

    record_bytes: int
    records: int
    partitions: int
    acks: str

    @property
    def megabytes(self) -> float:
        """Size of all records in MiB."""
        return self.record_bytes * self.records / 2**20

    def __str__(self) -> str:
        return f"{self.record_bytes} B, {self.partitions} partitions, acks={self.acks}"


def loads(small_records: int, large_records: int) -> list[Load]:
    """Every combination with a goal: `small_records` of 100 B and `large_records` of 1 KB."""
    return [
        Load(size, records, partitions, acks)
        for size, records in ((100, small_records), (1000, large_records))
        for partitions in (1, 6)
        for acks in ("1", "all")
    ]


class LoadClient(Protocol):
    """A client that sends a load and reads it back; both methods return MB/s."""

    def produce(self, servers: str, topic: str, load: Load) -> float:
        """Send the load."""

    def consume(self, servers: str, topic: str, load: Load) -> float:
        """Read it from the beginning."""


class Limits(NamedTuple):
    """Ratios to reach; None for rows without a goal."""

    produce: float | None = None
    produce_cpu: float | None = None
    consume: float | None = None
    consume_cpu: float | None = None


class _Measured(NamedTuple):
    """Figures of one broker under one load, one entry per round or read."""

    produced_mb_s: list[float]
    produce_cpu_s: list[float]
    consumed_mb_s: list[float]
    consume_cpu_s: list[float]


def compare(
    ours: MeasuredBroker,
    kafka: MeasuredBroker,
    client: LoadClient,
    all_loads: list[Load],
    limits: Limits,
    rounds: int,
    reads: int,
) -> Iterator[Comparison]:
    """Run every load on both brokers in turns; report the medians over all rounds and reads."""
    memory = FreeMemory()
    for load in (all_loads[0], all_loads[-1]):
        for number in range(_WARM_UPS):
            _round([ours, kafka], client, load, f"warm-up-{number}", memory, reads)
    for load in all_loads:
        mine, theirs = _Measured([], [], [], []), _Measured([], [], [], [])
        for number in range(rounds):
            # Alternate the order: the second one finds the client's files in the page cache.
            turns = {ours: mine, kafka: theirs} if number % 2 else {kafka: theirs, ours: mine}
            topic = f"bench-{all_loads.index(load)}-{number}"
            seen = _round(list(turns), client, load, topic, memory, reads)
            for found, more in zip(turns.values(), seen, strict=True):
                for values, new in zip(found, more, strict=True):
                    values += new
        yield from _rows(load, mine, theirs, limits)


def _rows(load: Load, ours: _Measured, kafka: _Measured, limits: Limits) -> Iterator[Comparison]:
    """Medians, because client and broker share two cores and single rounds vary both ways."""
    for what, unit, goal, mine, theirs, more in (
        ("produce", "MB/s", limits.produce, ours.produced_mb_s, kafka.produced_mb_s, True),
        ("produce CPU", "s", limits.produce_cpu, ours.produce_cpu_s, kafka.produce_cpu_s, False),
        ("consume", "MB/s", limits.consume, ours.consumed_mb_s, kafka.consumed_mb_s, True),
        ("consume CPU", "s", limits.consume_cpu, ours.consume_cpu_s, kafka.consume_cpu_s, False),
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
    """Write to each broker, then read from each in turns, so that load affects both alike."""
    seen = []
    for broker in brokers:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(topic, load.partitions, 1)])[topic].result(30)
        os.sync()  # dirty pages of the previous broker must not cost this one
        memory.touch()
        cpu = broker.cpu_seconds()
        produced = client.produce(broker.bootstrap_servers, topic, load)
        seen.append(_Measured([produced], [broker.cpu_seconds() - cpu], [], []))
    os.sync()
    for _ in range(reads):
        for broker, measured in zip(brokers, seen, strict=True):
            cpu = broker.cpu_seconds()
            measured.consumed_mb_s.append(client.consume(broker.bootstrap_servers, topic, load))
            measured.consume_cpu_s.append(broker.cpu_seconds() - cpu)
    for broker in brokers:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([topic])[topic].result(30)
    return seen
