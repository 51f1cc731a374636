"""Effect of a restarted or killed broker on a producer with acks=all: ours and Apache Kafka.

Opt-in, because it needs Apache Kafka and several minutes: KCTL_BENCH_CLUSTER=1.

The figure is the longest time from the call of produce to the acknowledgement, with librdkafka and
its retries. Both clusters share the machine; they take turns, broker by broker.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from bench.clusters import BROKERS, MeasuredCluster, both_clusters, create_topic, until_led
from bench.report import Comparison
from kctl.cli.output import Output
from tests.support.ack_load import AckLoad, ack_load
from tests.support.cluster import wait_until

ROUNDS = int(os.environ.get("KCTL_BENCH_ROUNDS", "10"))
KILLS = 3
PARTITIONS = 6
TOPIC = "restarts"
_PATIENCE_S = 120


def run() -> Iterator[Comparison]:
    """Restart and kill brokers of both clusters in turns."""
    if not os.environ.get("KCTL_BENCH_CLUSTER"):
        Output().note("restarts: skipped; KCTL_BENCH_CLUSTER=1 starts six brokers")
        return
    with both_clusters() as clusters:
        for cluster in clusters:
            asyncio.run(create_topic(cluster, TOPIC, PARTITIONS, list(BROKERS)))
        for what, rounds, end in (
            ("clean restart", ROUNDS * len(BROKERS), MeasuredCluster.stop),
            ("kill -9 of a leader", KILLS, MeasuredCluster.kill),
        ):
            ours, theirs = _longest_waits(clusters, rounds, end)
            name = f"longest acks=all wait, {rounds} x {what}"
            yield Comparison(name, ours, theirs, "Kafka", "s", goal=1.0)


def _longest_waits(
    clusters: tuple[MeasuredCluster, MeasuredCluster],
    rounds: int,
    end: Callable[[MeasuredCluster, int], None],
) -> tuple[float, float]:
    waits: dict[str, list[float]] = {cluster.name: [] for cluster in clusters}
    with ExitStack() as stack:
        loads = [
            stack.enter_context(ack_load(cluster.addresses(), TOPIC, PARTITIONS))
            for cluster in clusters
        ]
        for number in range(rounds):
            pairs = list(zip(clusters, loads, strict=True))
            for cluster, load in pairs if number % 2 == 0 else reversed(pairs):
                waits[cluster.name].append(_restart(cluster, load, end))
    for name, each in waits.items():
        Output().note(f"{name}: {' '.join(f'{wait_s:.2f}' for wait_s in each)}")
    ours, theirs = (max(waits[cluster.name]) for cluster in clusters)
    return ours, theirs


def _restart(
    cluster: MeasuredCluster, load: AckLoad, end: Callable[[MeasuredCluster, int], None]
) -> float:
    """End the broker that leads all partitions, and start it again when another one does."""
    _proceed(load)
    load.take_longest_wait()
    leader = asyncio.run(_leader(cluster))
    others = set(BROKERS) - {leader}
    end(cluster, leader)
    asyncio.run(until_led(cluster, TOPIC, others, without=(leader,)))
    _proceed(load)
    cluster.start(leader)
    asyncio.run(until_led(cluster, TOPIC, others, in_sync=len(BROKERS)))
    _proceed(load)
    assert not load.failed, load.failed[0]
    return load.take_longest_wait()


async def _leader(cluster: MeasuredCluster) -> int:
    for broker_id in BROKERS:
        try:
            await asyncio.wait_for(until_led(cluster, TOPIC, {broker_id}), 1)
        except TimeoutError:
            continue
        return broker_id
    raise AssertionError(f"{cluster.name}: no broker leads all partitions")


def _proceed(load: AckLoad) -> None:
    seen = load.counts()
    wait_until(lambda: load.has_moved_since(seen), "the producer continues", _PATIENCE_S)
