"""Rows and columns of `kctl cluster` and `kctl brokers`."""

from collections.abc import Sequence

from kctl.cli.tables import Column
from kctl.cli.theme import Spans, Style
from kctl.cli.times import iso_time
from kctl.cli.trees import Node
from kctl.model.cluster import Broker, Cluster, Controllership
from kctl.model.log_dirs import LogDir
from kctl.views.log_dirs import log_dir_node
from kctl.views.styles import if_any

CLUSTER_COLUMNS = [
    Column("cluster_id", "Cluster id"),
    Column("controller_id", "Controller"),
    Column("controller_epoch", "Controller epoch"),
    Column("controller_since", "Controller since"),
    Column("brokers", "Brokers"),
    Column("kraft", "KRaft"),
]

BROKER_COLUMNS = [
    Column("id", right=True),
    Column("host"),
    Column("port", right=True),
    Column("rack"),
    Column("controller", priority=1, style=if_any("controller", Style.GOOD)),
]

UNREGISTER_COLUMNS = [Column("broker", right=True), Column("change")]


def cluster_record(
    cluster: Cluster, controllership: Controllership | None = None
) -> dict[str, object]:
    """The cluster as a record of CLUSTER_COLUMNS; epoch and time only if they are known."""
    known = controllership or Controllership(None, None, None)
    epoch = cluster.controller_epoch if known.epoch is None else known.epoch
    since = {"controller_epoch": epoch, "controller_since": iso_time(known.since_ms)}
    return {
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller_id,
        **since,
        "brokers": [f"{broker.host}:{broker.port}" for broker in cluster.brokers],
        "kraft": cluster.is_kraft,
    }


def broker_rows(cluster: Cluster) -> list[dict[str, object]]:
    """A row of BROKER_COLUMNS per broker."""
    return [
        {
            "id": broker.id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "controller": broker.id == cluster.controller_id,
        }
        for broker in cluster.brokers
    ]


def cluster_tree(cluster: Cluster, log_dirs: Sequence[LogDir]) -> Node:
    """The cluster, its brokers and their log directories."""
    brokers = [
        Node(
            _broker_spans(broker, is_controller=broker.id == cluster.controller_id),
            [log_dir_node(one) for one in log_dirs if one.broker_id == broker.id],
        )
        for broker in cluster.brokers
    ]
    return Node(((f"cluster {cluster.cluster_id}", Style.HEADING),), brokers)


def _broker_spans(broker: Broker, *, is_controller: bool) -> Spans:
    spans: list[tuple[str, Style | None]] = [
        (f"broker {broker.id}", Style.NAME),
        (f"  {broker.host}:{broker.port}", None),
    ]
    if broker.rack:
        spans.append((f"  rack {broker.rack}", Style.FAINT))
    if is_controller:
        spans.append(("  controller", Style.GOOD))
    return tuple(spans)
