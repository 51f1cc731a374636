"""Three of our brokers compared with three of Apache Kafka: replicated writes, failover, idle cost.

Opt-in, because it needs Apache Kafka and several minutes: KCTL_BENCH_CLUSTER=1.

Both clusters share the machine, and neither must pay for the other: the order alternates, dirty
pages are synced before each measurement, and the topic is deleted after it.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from bench.clusters import (
    BROKERS,
    MeasuredCluster,
    both_clusters,
    create_topic,
    delete_topic,
    until_led,
)
from bench.free_memory import FreeMemory
from bench.java_client import JavaClient, run_tool
from bench.loads import Load
from bench.report import Comparison
from broker.net.client import Client
from broker.protocol.messages.elect_leaders import ElectLeadersRequest
from kctl.cli.output import Output

LOADS = (Load(1000, 200_000, 6, "all"), Load(100, 600_000, 6, "all"))
MANY = 1000
ROUNDS = 3
FAILOVERS = 3
IDLE_S = 20
T = TypeVar("T")


def run() -> Iterator[Comparison]:
    """Run every measurement on both clusters in turns."""
    if not os.environ.get("KCTL_BENCH_CLUSTER"):
        Output().note("cluster: skipped; KCTL_BENCH_CLUSTER=1 starts six brokers")
        return
    with both_clusters() as (ours, kafka):
        yield from _produce(ours, kafka)
        yield from _failover(ours, kafka)
        yield from _many_partitions(ours, kafka)


def _produce(ours: MeasuredCluster, kafka: MeasuredCluster) -> Iterator[Comparison]:
    memory = FreeMemory()
    for cluster in (ours, kafka):
        _produce_round(memory, Load(100, 200_000, 6, "all"), cluster, 0)
    for load in LOADS:
        measure = partial(_produce_round, memory, load)
        mine, theirs = _in_turns(ours, kafka, measure, ROUNDS)
        (my_rate, my_cpu), (their_rate, their_cpu) = _best(mine), _best(theirs)
        what = f"{load}, 3 replicas"
        yield Comparison(
            f"produce {what}", my_rate, their_rate, "Kafka", "MB/s", goal=1.0, more_is_better=True
        )
        yield Comparison(f"CPU of all brokers, {what}", my_cpu, their_cpu, "Kafka", "s")


def _in_turns(
    ours: MeasuredCluster,
    kafka: MeasuredCluster,
    measure: Callable[[MeasuredCluster, int], T],
    rounds: int,
) -> tuple[list[T], list[T]]:
    """Measure each round on our cluster and on Kafka's, with the order alternating."""
    mine: list[T] = []
    theirs: list[T] = []
    for number in range(rounds):
        turns = [(ours, mine), (kafka, theirs)]
        for cluster, found in turns if number % 2 == 0 else reversed(turns):
            found.append(measure(cluster, number))
    return mine, theirs


def _best(rounds: list[tuple[float, float]]) -> tuple[float, float]:
    return max(rate for rate, _ in rounds), min(cpu for _, cpu in rounds)


def _produce_round(
    memory: FreeMemory, load: Load, cluster: MeasuredCluster, number: int
) -> tuple[float, float]:
    """Rate in MB/s, and CPU seconds used by all brokers."""
    topic = f"produce-{load.record_bytes}-{number}"
    run_tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", cluster.addresses(), "--create", "--topic", topic),
        *("--partitions", str(load.partitions), "--replication-factor", str(len(BROKERS))),
    )
    os.sync()
    memory.touch()
    before = cluster.cpu_seconds()
    rate = JavaClient().produce(cluster.addresses(), topic, load)
    spent = cluster.cpu_seconds() - before
    asyncio.run(delete_topic(cluster, topic))
    return rate, spent


def _failover(ours: MeasuredCluster, kafka: MeasuredCluster) -> Iterator[Comparison]:
    """Kill a leader and measure how long until another broker reports a new one."""
    mine, theirs = map(statistics.median, _in_turns(ours, kafka, _leaderless_s, FAILOVERS))
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
        ("to other brokers after their broker died", _moved_after_death_s),
        ("back by preferred election", _moved_by_election_s),
    ):
        mine, theirs = (asyncio.run(measure(cluster)) for cluster in clusters)
        yield Comparison(f"{MANY:,} leaders moved {moved}", mine, theirs, "Kafka", "s", goal=1.0)


def _idle_cost(cluster: MeasuredCluster) -> tuple[float, float]:
    """CPU use (percent of a core) and resident memory per broker, averaged over all brokers."""
    brokers = cluster.measured()
    time.sleep(IDLE_S / 2)  # let the work after the topic's creation finish
    before, since = [broker.cpu_seconds() for broker in brokers], time.monotonic()
    time.sleep(IDLE_S)
    spent = [broker.cpu_seconds() - first for broker, first in zip(brokers, before, strict=True)]
    percent = 100 * statistics.mean(spent) / (time.monotonic() - since)
    return percent, statistics.mean(broker.resident_mb() for broker in brokers)


async def _moved_after_death_s(cluster: MeasuredCluster) -> float:
    """Time to move all leaders, from the end of their broker's ZooKeeper session."""
    await asyncio.to_thread(cluster.kill_noticed, 1)
    since = time.monotonic()
    return await until_led(cluster, "many", {2, 3}, without=(1,)) - since


async def _moved_by_election_s(cluster: MeasuredCluster) -> float:
    """Time from ElectLeaders, with the broker back in every ISR, until the other brokers know."""
    await asyncio.to_thread(cluster.start, 1)
    await until_led(cluster, "many", {2, 3}, in_sync=3)
    async with Client(cluster.addresses(), request_timeout_s=120) as client:
        since = time.monotonic()
        await client.send_to_controller(
            ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=120_000)
        )
    return await until_led(cluster, "many", {1}) - since
