"""Everything moves again after the last fault, without help and within a bounded time."""

import time
from collections.abc import Iterator

from tests.chaos.clients import Load
from tests.chaos.stage import HEAL_S
from tests.support.cluster import Cluster, wait_until

Partition = tuple[str, int, list[int]]
"""Topic, index, replicas."""


def partitions_of(cluster: Cluster) -> Iterator[Partition]:
    """Every partition of the cluster, internal topics included."""
    for topic in sorted(cluster.tree.get_children("/brokers/topics")):
        assignment = cluster.znode(f"/brokers/topics/{topic}")["partitions"]
        for partition, replicas in assignment.items():
            yield topic, int(partition), replicas


def check_recovery(cluster: Cluster, load: Load) -> float:
    """Seconds until ISRs are complete and every client has made progress; at most a minute."""
    began = time.monotonic()
    before = load.progress()
    wait_until(lambda: not _incomplete(cluster), f"complete ISRs: {_incomplete(cluster)}", HEAL_S)
    left_s = HEAL_S - (time.monotonic() - began)
    wait_until(
        lambda: all(load.progress()[name] > before[name] for name in before),
        f"all clients move on: {before}",
        max(left_s, 1),
    )
    return time.monotonic() - began


def _incomplete(cluster: Cluster) -> list[Partition]:
    return [
        (topic, partition, cluster.isr(topic, partition))
        for topic, partition, replicas in partitions_of(cluster)
        if sorted(cluster.isr(topic, partition)) != sorted(replicas)
    ]


def check_watermarks(cluster: Cluster, ends: dict[tuple[str, int], int]) -> None:
    """Every replica's high watermark reaches the log end that clients see."""

    def behind() -> list[tuple[str, int, int, int | None]]:
        found = {broker_id: _checkpoint(cluster, broker_id) for broker_id in cluster.servers}
        return [
            (topic, partition, broker_id, found[broker_id].get((topic, partition)))
            for topic, partition, replicas in partitions_of(cluster)
            for broker_id in replicas
            if found[broker_id].get((topic, partition)) != ends[topic, partition]
        ]

    try:
        wait_until(lambda: not behind(), "HW = LEO", HEAL_S)
    except AssertionError as error:
        raise AssertionError(f"high watermarks stay behind: {behind()} of {ends}") from error


def _checkpoint(cluster: Cluster, broker_id: int) -> dict[tuple[str, int], int]:
    """The high watermarks of a broker as it writes them to disk every five seconds.

    Empty for a broker that has not written any yet: it was started less than five seconds ago.
    """
    file = cluster.log_dir(broker_id) / "replication-offset-checkpoint"
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return {}
    rows = [line.rsplit(" ", 2) for line in lines[2:]]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}
