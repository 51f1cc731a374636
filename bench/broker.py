"""One broker of ours beside one of Apache Kafka: rates, CPU and memory, with Kafka's own client."""

import os
import re
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from bench.report import Comparison
from bench.servers import MeasuredBroker, both_brokers
from tests.support.real_kafka import java_command

_PRODUCED = re.compile(r"records sent, [\d.]+ records/sec \(([\d.]+) MB/sec\)")
_ROUNDS = 3
_WARM_UPS = 3
"""Java compiles what it often runs: its second and third round of a load cost half of the first."""


class Load(NamedTuple):
    """What is sent and read."""

    record_bytes: int
    records: int
    partitions: int
    acks: str

    def __str__(self) -> str:
        return f"{self.record_bytes} B, {self.partitions} partitions, acks={self.acks}"


LOADS = [
    Load(size, records, partitions, acks)
    for size, records in ((100, 1_500_000), (1000, 400_000))
    for partitions in (1, 6)
    for acks in ("1", "all")
]


class Measured(NamedTuple):
    """The best of some rounds."""

    produced_mb_s: float
    produce_cpu_s: float
    consumed_mb_s: float


def run() -> Iterator[Comparison]:
    """Every load on both, in turns; then what is resident after all of it."""
    with both_brokers() as (ours, kafka):
        yield Comparison("memory idle", ours.resident_mb(), kafka.resident_mb(), "Kafka", "MB")
        yield Comparison("memory idle", ours.resident_mb(), 60, "limit", "MB", goal=1)
        for number in range(_WARM_UPS):
            for broker in (ours, kafka):
                _round(broker, Load(1000, 200_000, 6, "all"), f"warm-up-{number}")
        for load in LOADS:
            yield from _compare(load, ours, kafka)
        yield Comparison("memory after", ours.resident_mb(), kafka.resident_mb(), "Kafka", "MB")
        yield Comparison("memory after", ours.resident_mb(), 150, "limit", "MB", goal=1)


def _compare(load: Load, ours: MeasuredBroker, kafka: MeasuredBroker) -> Iterator[Comparison]:
    rounds: dict[MeasuredBroker, list[Measured]] = {ours: [], kafka: []}
    for number in range(_ROUNDS):
        # Who goes first alternates: the second finds the client's files in memory.
        for broker in (ours, kafka) if number % 2 else (kafka, ours):
            topic = f"bench-{LOADS.index(load)}-{number}"
            rounds[broker].append(_round(broker, load, topic))
    mine, theirs = (_best(rounds[broker]) for broker in (ours, kafka))
    for what, unit, goal, index, more in (
        ("produce", "MB/s", 1.0, 0, True),
        ("produce CPU", "s", 0.5, 1, False),
        ("consume", "MB/s", 1.0, 2, True),
    ):
        yield Comparison(
            f"{what}: {load}", mine[index], theirs[index], "Kafka", unit, goal, more_is_better=more
        )


def _best(rounds: list[Measured]) -> Measured:
    produced, cpu, consumed = zip(*rounds, strict=True)
    return Measured(max(produced), min(cpu), max(consumed))


def _round(broker: MeasuredBroker, load: Load, topic: str) -> Measured:
    _tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", broker.bootstrap_servers, "--create", "--topic", topic),
        *("--partitions", str(load.partitions), "--replication-factor", "1"),
    )
    os.sync()  # what the last one wrote is not written at the cost of this one
    cpu = broker.cpu_seconds()
    produced = _tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(load.records)),
        *("--record-size", str(load.record_bytes), "--throughput", "-1", "--producer-props"),
        *(f"bootstrap.servers={broker.bootstrap_servers}", f"acks={load.acks}"),
    )
    cpu = broker.cpu_seconds() - cpu
    consumed = _tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic),
        *("--messages", str(load.records), "--hide-header"),
    )
    _tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", broker.bootstrap_servers, "--delete", "--topic", topic),
    )
    found = _PRODUCED.search(produced.splitlines()[-1])
    assert found, produced
    return Measured(float(found[1]), cpu, float(consumed.splitlines()[-1].split(", ")[-2]))


def _tool(main_class: str, *args: str) -> str:
    command = java_command(main_class, *args)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{main_class}: {done.stderr or done.stdout}")
    return done.stdout
