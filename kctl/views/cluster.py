"""Rows and columns of `kctl cluster` and `kctl brokers`."""

from kctl.cli.tables import Column
from kctl.model.cluster import Cluster

CLUSTER_COLUMNS = [
    Column("cluster_id", "Cluster id"),
    Column("controller_id", "Controller"),
    Column("brokers", "Brokers"),
]

BROKER_COLUMNS = [
    Column("id", right=True),
    Column("host"),
    Column("port", right=True),
    Column("rack"),
    Column("controller"),
]


def cluster_record(cluster: Cluster) -> dict[str, object]:
    """The cluster as a record of CLUSTER_COLUMNS."""
    return {
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller_id,
        "brokers": [f"{broker.host}:{broker.port}" for broker in cluster.brokers],
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
