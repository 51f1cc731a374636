"""The cluster and its brokers."""

from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest
from kctl.admin.connection import ask
from kctl.cli.options import Session
from kctl.model.cluster import Broker, Cluster


async def describe_cluster(client: Client) -> Cluster:
    """The cluster; brokers sorted by id.

    Uses Metadata without topics, which all versions since 0.10 support.
    """
    answer = await client.send(MetadataRequest(topics=[]))
    brokers = [Broker(b.node_id, b.host, b.port, b.rack) for b in answer.brokers]
    return Cluster(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id if answer.controller_id >= 0 else None,
        brokers=tuple(sorted(brokers, key=lambda broker: broker.id)),
    )


def find_cluster_id(session: Session) -> str | None:
    """The id of the session's cluster; None if its brokers have none (before 0.10.1)."""
    return ask(session, describe_cluster).cluster_id
