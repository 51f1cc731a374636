"""Replicas compared on disk: the same batches, byte for byte, up to the high watermark."""

from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from broker.records.batch import iterate_batches
from tests.chaos.liveness import check_watermarks, partitions_of
from tests.crash.workload import TIMEOUT_S
from tests.support.cluster import Cluster


def check_replicas(cluster: Cluster) -> int:
    """Wait until all high watermarks are at the log end; compare all replicas up to there.

    Returns the number of batches. The load has ended, and all replicas are in sync.
    """
    names = list(partitions_of(cluster))
    watermarks = _high_watermarks(cluster, [name[:2] for name in names])
    check_watermarks(cluster, {name[:2]: end for name, end in zip(names, watermarks, strict=True)})
    return sum(
        _check_partition(cluster, *name, watermark)
        for name, watermark in zip(names, watermarks, strict=True)
    )


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
    """Base offset and bytes of every batch; none lies beyond the high watermark.

    Replicas roll segments independently, so segment boundaries are not compared.
    """
    batches = [
        batch
        for segment in sorted(directory.glob("*.log"))
        for batch in iterate_batches(segment.read_bytes())
    ]
    beyond = [batch.last_offset for batch in batches if batch.last_offset >= high_watermark]
    assert not beyond, f"{directory.name}: {beyond[0]} is beyond {high_watermark}"
    return [(batch.base_offset, bytes(batch.view)) for batch in batches]
