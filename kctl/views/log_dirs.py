"""Rows and columns of `kctl log-dirs`."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from kctl.cli.tables import Column
from kctl.cli.theme import Spans, Style
from kctl.cli.trees import Node
from kctl.model.log_dirs import LogDir, Replica
from kctl.model.strays import Stray
from kctl.views.quantities import human_bytes, plural
from kctl.views.styles import always, bars, if_any, size_column, usage_bar, usage_bars


class GroupBy(StrEnum):
    """What each row shows."""

    REPLICA = "replica"
    TOPIC = "topic"
    DIR = "dir"
    BROKER = "broker"


_SIZE = size_column("size_bytes", priority=0)
_SKEW = Column("skew", " ", chart=bars("size_bytes"), priority=7)
BYTES = [_SIZE, _SKEW, Column("replicas", right=True)]

COLUMNS = {
    GroupBy.REPLICA: [
        Column("broker", right=True),
        Column("log_dir"),
        Column("topic", priority=0),
        Column("partition", right=True, priority=0),
        _SIZE,
        _SKEW,
        Column("offset_lag", right=True, style=if_any("offset_lag", Style.WARN)),
        Column("stray", style=if_any("stray", Style.BAD)),
        Column("future", wide=True, style=if_any("future", Style.NAME)),
    ],
    GroupBy.TOPIC: [Column("topic"), *BYTES],
    GroupBy.DIR: [
        Column("broker", right=True),
        Column("log_dir", priority=0),
        _SIZE,
        Column("replicas", right=True, priority=6),
        size_column("usable_bytes", "USABLE", priority=3),
        size_column("total_bytes", "TOTAL", priority=4),
        Column("disk_use", chart=usage_bars("usable_bytes", "total_bytes"), priority=2),
        Column("error", priority=1, style=always(Style.BAD)),
    ],
    GroupBy.BROKER: [Column("broker", right=True), *BYTES],
}


def log_dir_rows(
    log_dirs: Sequence[LogDir], group_by: GroupBy, strays: Collection[Stray] = ()
) -> list[dict[str, object]]:
    """Rows of replicas, topics, directories or brokers; largest first.

    Rows of replicas tell which are `strays`; the others include them, since they use disk space.
    """
    placed = [(log_dir, replica) for log_dir in log_dirs for replica in log_dir.replicas]
    if group_by is GroupBy.REPLICA:
        rows = [
            _replica_row(log_dir, replica)
            | {"stray": (log_dir.broker_id, replica.partition) in strays}
            for log_dir, replica in placed
        ]
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


def log_dir_node(log_dir: LogDir, children: Sequence[Node] = ()) -> Node:
    """A log directory as a line of a tree: disk use, and what its replicas take."""
    if log_dir.error:
        return Node(((log_dir.path, None), (f"  {log_dir.error.name}", Style.BAD)), children)
    size = human_bytes(sum(replica.size_bytes for replica in log_dir.replicas))
    spans: Spans = ((log_dir.path, None),)
    if log_dir.total_bytes and log_dir.usable_bytes is not None:
        used = 1 - log_dir.usable_bytes / log_dir.total_bytes
        free = f" of {human_bytes(log_dir.total_bytes)}"
        spans = (*spans, ("  ", None), *usage_bar(used), (free, None))
    return Node((*spans, (f"  {plural(len(log_dir.replicas), 'replica')}, {size}", None)), children)


def log_dir_tree(log_dirs: Sequence[LogDir]) -> list[Node]:
    """Brokers, their log directories, and the topics in each, largest first."""
    brokers = sorted({log_dir.broker_id for log_dir in log_dirs})
    return [
        Node(
            ((f"broker {broker}", Style.NAME),),
            [
                log_dir_node(one, [_topic_node(row) for row in log_dir_rows([one], GroupBy.TOPIC)])
                for one in log_dirs
                if one.broker_id == broker
            ],
        )
        for broker in brokers
    ]


def _topic_node(row: dict[str, object]) -> Node:
    size = human_bytes(float(str(row["size_bytes"])))
    count = plural(int(str(row["replicas"])), "replica")
    return Node(((str(row["topic"]), None), (f"  {size}, {count}", Style.FAINT)))
