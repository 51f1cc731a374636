"""Replicas compared on disk: the same batches, byte for byte, up to the high watermark."""

from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from broker.records.batch import iterate_batches
from tests.crash.workload import TIMEOUT_S
from tests.support.cluster import Cluster, wait_until

HEAL_S = 60


def _wait_for_isr(cluster: Cluster, topic: str, partition: int, replicas: list[int]) -> None:
    wait_until(
        lambda: sorted(cluster.isr(topic, partition)) == sorted(replicas),
        f"{topic}-{partition} in sync on {replicas}",
        HEAL_S,
    )


def check_replicas(cluster: Cluster) -> int:
    """Wait until all replicas are in sync and compare them; returns the number of batches."""
    names = list(_partitions(cluster))
    for topic, partition, replicas in names:
        _wait_for_isr(cluster, topic, partition, replicas)
    watermarks = _high_watermarks(cluster, [name[:2] for name in names])
    return sum(
        _check_partition(cluster, *name, watermark)
        for name, watermark in zip(names, watermarks, strict=True)
    )


def _partitions(cluster: Cluster) -> Iterator[tuple[str, int, list[int]]]:
    for topic in cluster.tree.get_children("/brokers/topics"):
        assignment = cluster.znode(f"/brokers/topics/{topic}")["partitions"]
        for partition, replicas in assignment.items():
            yield topic, int(partition), replicas


def _high_watermarks(cluster: Cluster, names: list[tuple[str, int]]) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "checker"})
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(*name), TIMEOUT_S)[1] for name in names
        ]
    finally:
        consumer.close()


def _check_partition(
    cluster: Cluster, topic: str, partition: int, replicas: list[int], high_watermark: int
) -> int:
    logs = {
        broker_id: _batches(cluster.log_dir(broker_id) / f"{topic}-{partition}", high_watermark)
        for broker_id in replicas
    }
    first, *others = logs.items()
    for broker_id, batches in others:
        differing = [
            (mine[0], theirs[0])
            for mine, theirs in zip(first[1], batches, strict=False)
            if mine != theirs
        ]
        assert not differing, f"{topic}-{partition}: {first[0]} and {broker_id} at {differing[0]}"
        assert len(batches) == len(first[1]), f"{topic}-{partition}: {first[0]} and {broker_id}"
    return len(first[1])


def _batches(directory: Path, high_watermark: int) -> list[tuple[int, bytes]]:
    """Base offset and bytes of every batch below the high watermark.

    Where segments begin is each replica's own affair, so it is not compared.
    """
    return [
        (batch.base_offset, bytes(batch.view))
        for segment in sorted(directory.glob("*.log"))
        for batch in iterate_batches(segment.read_bytes())
        if batch.last_offset < high_watermark
    ]
