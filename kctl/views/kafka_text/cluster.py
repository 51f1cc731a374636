"""The output of kafka-cluster."""

from kctl.model.cluster import Cluster


def cluster_id_line(cluster: Cluster) -> str:
    """The line of `kafka-cluster cluster-id`."""
    if cluster.cluster_id is None:
        return "No cluster ID found. The Kafka version is probably too old."
    return f"Cluster ID: {cluster.cluster_id}"
