"""Reads everything that `kctl health` judges; brokers that do not answer are part of the result."""

from typing import Final

from broker.errors import ApiError
from broker.net.client import Client
from kctl.admin.broker_queries import SCOPE
from kctl.admin.cluster import describe_cluster
from kctl.admin.describe_topics import topic_configs
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.topics import find_topics
from kctl.model.health import ClusterState
from kctl.model.topics import Description

_ATTEMPTS: Final = 3
"""Reads of a cluster whose brokers come and go all the time."""


async def cluster_state(client: Client) -> ClusterState:
    """The state of the cluster; for partial queries.

    Several requests make up the state. If a broker joins or leaves between them, no request may
    have noticed: the list of brokers was read while it was registered, and its log directories were
    queried when it was gone. The state is read again then, so that a broken cluster does not look
    healthy for a moment.
    """
    state = await _read_state(client)
    for _ in range(_ATTEMPTS - 1):
        if (await describe_cluster(client)).brokers == state.cluster.brokers:
            break
        state = await _read_state(client)
    return state


async def _read_state(client: Client) -> ClusterState:
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
