"""Three brokers of ours beside three of Apache Kafka: replicated writes, failover, idle cost.

Opt-in, because it needs Apache Kafka and some minutes: KCTL_BENCH_CLUSTER=1.
"""

import asyncio
import os
import re
import statistics
import time
from collections.abc import Iterator

from bench.clusters import BROKERS, MeasuredCluster, both_clusters, create_topic, until_led
from bench.report import Comparison
from broker.net.client import Client
from broker.protocol.messages.elect_leaders import ElectLeadersRequest
from kctl.output import Output

PARTITIONS = 6
LOADS = ((1000, 200_000), (100, 600_000))
"""Bytes of a record, number of records."""
MANY = 1000
ROUNDS = 2
FAILOVERS = 3
IDLE_S = 20
_PRODUCED = re.compile(r"records sent, [\d.]+ records/sec \(([\d.]+) MB/sec\)")


def run() -> Iterator[Comparison]:
    """Everything on both, in turns."""
    if not os.environ.get("KCTL_BENCH_CLUSTER"):
        Output().note("cluster: skipped; KCTL_BENCH_CLUSTER=1 starts six brokers")
        return
    with both_clusters() as (ours, kafka):
        yield from _produce(ours, kafka)
        yield from _failover(ours, kafka)
        yield from _many_partitions(ours, kafka)


def _produce(ours: MeasuredCluster, kafka: MeasuredCluster) -> Iterator[Comparison]:
    for cluster in (ours, kafka):
        _produced_mb_s(cluster, "warm-up", 100, 200_000)
    for size, records in LOADS:
        rounds = [
            [
                _produce_round(cluster, f"produce-{size}-{number}", size, records)
                for cluster in (ours, kafka)
            ]
            for number in range(ROUNDS)
        ]
        (my_rate, my_cpu), (their_rate, their_cpu) = map(_best, zip(*rounds, strict=True))
        what = f"{size} B, acks=all, 3 replicas, {PARTITIONS} partitions"
        yield Comparison(
            f"produce {what}", my_rate, their_rate, "Kafka", "MB/s", goal=1.0, more_is_better=True
        )
        yield Comparison(f"CPU of all brokers, {what}", my_cpu, their_cpu, "Kafka", "s")


def _best(rounds: tuple[tuple[float, float], ...]) -> tuple[float, float]:
    return max(rate for rate, _ in rounds), min(cpu for _, cpu in rounds)


def _produce_round(
    cluster: MeasuredCluster, topic: str, size: int, records: int
) -> tuple[float, float]:
    """The rate in MB/s, and the seconds of CPU time that all brokers spent."""
    brokers = cluster.measured()
    before = sum(broker.cpu_seconds() for broker in brokers)
    rate = _produced_mb_s(cluster, topic, size, records)
    return rate, sum(broker.cpu_seconds() for broker in brokers) - before


def _produced_mb_s(cluster: MeasuredCluster, topic: str, size: int, records: int) -> float:
    cluster.run_tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", cluster.addresses(), "--create", "--topic", topic),
        *("--partitions", str(PARTITIONS), "--replication-factor", str(len(BROKERS))),
    )
    output = cluster.run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(size)),
        *("--throughput", "-1", "--producer-props"),
        *(f"bootstrap.servers={cluster.addresses()}", "acks=all"),
    )
    found = _PRODUCED.search(output.splitlines()[-1])
    assert found, output
    return float(found[1])


def _failover(ours: MeasuredCluster, kafka: MeasuredCluster) -> Iterator[Comparison]:
    """Kill a leader; how long until another broker names a new one."""
    times = [
        [_leaderless_s(cluster, number) for cluster in (ours, kafka)] for number in range(FAILOVERS)
    ]
    mine, theirs = (statistics.median(side) for side in zip(*times, strict=True))
    yield Comparison("no leader after kill -9", mine, theirs, "Kafka", "s", goal=1.0)


def _leaderless_s(cluster: MeasuredCluster, number: int) -> float:
    leader, *others = (BROKERS[(number + step) % 3] for step in range(3))
    topic = f"failover-{number}"
    asyncio.run(create_topic(cluster, topic, 1, [leader, *others]))
    since = time.monotonic()
    cluster.kill(leader)
    moved = asyncio.run(until_led(cluster, topic, set(others), without=(leader,)))
    cluster.start(leader)
    asyncio.run(until_led(cluster, topic, set(others), in_sync=3))
    return moved - since


def _many_partitions(ours: MeasuredCluster, kafka: MeasuredCluster) -> Iterator[Comparison]:
    clusters = (ours, kafka)
    for cluster in clusters:
        asyncio.run(create_topic(cluster, "many", MANY, [1, 2, 3]))
    (my_cpu, my_memory), (their_cpu, their_memory) = (_idle_cost(each) for each in clusters)
    what = f"idle broker, {MANY:,} replicated partitions"
    yield Comparison(f"CPU of an {what}", my_cpu, their_cpu, "Kafka", "%", goal=0.5)
    yield Comparison(f"memory of an {what}", my_memory, their_memory, "Kafka", "MB", goal=0.5)
    for moved, measure in (
        ("to others when their broker is dead", _deserted_s),
        ("back by preferred election", _elected_s),
    ):
        mine, theirs = (asyncio.run(measure(cluster)) for cluster in clusters)
        yield Comparison(f"{MANY:,} leaders moved {moved}", mine, theirs, "Kafka", "s", goal=1.0)


def _idle_cost(cluster: MeasuredCluster) -> tuple[float, float]:
    """Percent of a core and resident memory, of one broker: the mean of all."""
    brokers = cluster.measured()
    time.sleep(IDLE_S / 2)  # until what the topic's creation left to do is done
    before, since = [broker.cpu_seconds() for broker in brokers], time.monotonic()
    time.sleep(IDLE_S)
    spent = [broker.cpu_seconds() - first for broker, first in zip(brokers, before, strict=True)]
    percent = 100 * statistics.mean(spent) / (time.monotonic() - since)
    return percent, statistics.mean(broker.resident_mb() for broker in brokers)


async def _deserted_s(cluster: MeasuredCluster) -> float:
    """From the end of the session of the broker that leads them all."""
    await asyncio.to_thread(cluster.kill_noticed, 1)
    since = time.monotonic()
    return await until_led(cluster, "many", {2, 3}, without=(1,)) - since


async def _elected_s(cluster: MeasuredCluster) -> float:
    """From the request, with the broker back and in sync, until the others know."""
    await asyncio.to_thread(cluster.start, 1)
    await until_led(cluster, "many", {2, 3}, in_sync=3)
    async with Client(cluster.addresses(), request_timeout_s=120) as client:
        since = time.monotonic()
        await client.send_to_controller(
            ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=120_000)
        )
    return await until_led(cluster, "many", {1}) - since
