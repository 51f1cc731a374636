"""Rows and columns of `kctl log-dirs`."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum

from kctl.cli.tables import Column
from kctl.model.log_dirs import LogDir, Replica


class GroupBy(StrEnum):
    """What each row shows."""

    REPLICA = "replica"
    TOPIC = "topic"
    DIR = "dir"
    BROKER = "broker"


BYTES = [Column("size_bytes", "BYTES", right=True), Column("replicas", right=True)]

COLUMNS = {
    GroupBy.REPLICA: [
        Column("broker", right=True),
        Column("log_dir"),
        Column("topic"),
        Column("partition", right=True),
        Column("size_bytes", "BYTES", right=True),
        Column("offset_lag", right=True),
        Column("future", wide=True),
    ],
    GroupBy.TOPIC: [Column("topic"), *BYTES],
    GroupBy.DIR: [
        Column("broker", right=True),
        Column("log_dir"),
        *BYTES,
        Column("usable_bytes", right=True),
        Column("total_bytes", right=True),
        Column("error"),
    ],
    GroupBy.BROKER: [Column("broker", right=True), *BYTES],
}


def log_dir_rows(log_dirs: Sequence[LogDir], group_by: GroupBy) -> list[dict[str, object]]:
    """Rows of replicas, topics, directories or brokers; largest first."""
    placed = [(log_dir, replica) for log_dir in log_dirs for replica in log_dir.replicas]
    if group_by is GroupBy.REPLICA:
        rows = [_replica_row(log_dir, replica) for log_dir, replica in placed]
    elif group_by is GroupBy.TOPIC:
        by_topic: dict[str, list[Replica]] = defaultdict(list)
        for _, replica in placed:
            by_topic[replica.partition.topic].append(replica)
        rows = [{"topic": name, **_sum(replicas)} for name, replicas in by_topic.items()]
    elif group_by is GroupBy.BROKER:
        by_broker: dict[int, list[Replica]] = {log_dir.broker_id: [] for log_dir in log_dirs}
        for log_dir, replica in placed:
            by_broker[log_dir.broker_id].append(replica)
        rows = [{"broker": broker, **_sum(replicas)} for broker, replicas in by_broker.items()]
    else:
        rows = [_dir_row(log_dir) for log_dir in log_dirs]
    return sorted(rows, key=_largest_first)


def _largest_first(row: dict[str, object]) -> tuple[int, list[str]]:
    """Sort key: largest first, then by broker, topic and partition."""
    names = [str(row.get(key, "")).rjust(10) for key in ("broker", "topic", "partition")]
    return -int(str(row["size_bytes"])), names


def _replica_row(log_dir: LogDir, replica: Replica) -> dict[str, object]:
    return {
        "broker": log_dir.broker_id,
        "log_dir": log_dir.path,
        "topic": replica.partition.topic,
        "partition": replica.partition.partition,
        "size_bytes": replica.size_bytes,
        "offset_lag": replica.offset_lag,
        "future": replica.is_future,
    }


def _dir_row(log_dir: LogDir) -> dict[str, object]:
    return {
        "broker": log_dir.broker_id,
        "log_dir": log_dir.path,
        **_sum(log_dir.replicas),
        "usable_bytes": log_dir.usable_bytes,
        "total_bytes": log_dir.total_bytes,
        "error": log_dir.error.name if log_dir.error else None,
    }


def _sum(replicas: Iterable[Replica]) -> dict[str, object]:
    sizes = [replica.size_bytes for replica in replicas]
    return {"size_bytes": sum(sizes), "replicas": len(sizes)}
