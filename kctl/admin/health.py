"""Reads everything that `kctl health` judges; brokers that do not answer are part of the result."""

from broker.errors import ApiError
from broker.net.client import Client
from kctl.admin.broker_queries import SCOPE
from kctl.admin.cluster import describe_cluster
from kctl.admin.describe_topics import topic_configs
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.topics import find_topics
from kctl.model.health import ClusterState
from kctl.model.topics import Description


async def cluster_state(client: Client) -> ClusterState:
    """The state of the cluster; for partial queries."""
    cluster = await describe_cluster(client)
    topics = await find_topics(client)
    log_dirs = await describe_log_dirs(client, None, None)
    min_isr: dict[str, int] = {}
    suspects = [t for t in topics if any(p.is_under_replicated for p in t.partitions)]
    try:
        configs = await topic_configs(client, suspects) if suspects else {}
        described = Description(suspects, configs)
        min_isr = {topic.name: described.min_isr(topic) for topic in suspects}
    except ApiError:  # not allowed: judged without it
        pass
    failures = tuple(SCOPE.get().failures.values())
    return ClusterState(cluster, topics, min_isr, log_dirs, failures)
