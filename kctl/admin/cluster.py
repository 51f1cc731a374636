"""The cluster and its brokers."""

import asyncio
from dataclasses import replace

from broker.errors import ApiError
from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.unregister_broker import UnregisterBrokerRequest
from kctl.admin.broker_queries import change_by_controller
from kctl.admin.connection import ask
from kctl.admin.quorum import find_quorum
from kctl.cli.options import Session
from kctl.model.cluster import Broker, Cluster
from kctl.model.outcomes import Outcome, outcome

QUORUM_TIMEOUT_S = 3.0
"""A broker without an active controller answers DescribeQuorum only after its request timeout."""


async def describe_cluster(client: Client) -> Cluster:
    """The cluster; brokers sorted by id.

    Uses Metadata without topics, which all versions since 0.10 support. In KRaft mode Metadata
    names any broker as the controller, so the quorum is queried for its leader; brokers that use
    ZooKeeper lack that API, and nothing is sent to them.
    """
    answer = await client.send(MetadataRequest(topics=[]))
    brokers = [Broker(b.node_id, b.host, b.port, b.rack) for b in answer.brokers]
    cluster = Cluster(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id if answer.controller_id >= 0 else None,
        brokers=tuple(sorted(brokers, key=lambda broker: broker.id)),
    )
    return await _with_quorum_leader(client, cluster)


async def _with_quorum_leader(client: Client, cluster: Cluster) -> Cluster:
    in_kraft = replace(cluster, is_kraft=True, controller_id=None)
    try:
        async with asyncio.timeout(QUORUM_TIMEOUT_S):
            quorum = await find_quorum(client)
    except TimeoutError:
        return in_kraft
    except ApiError:  # not allowed
        return replace(in_kraft, is_controller_known=False)
    if quorum is None:
        return cluster
    controller_id = quorum.leader_id if quorum.leader_id >= 0 else None
    return replace(in_kraft, controller_id=controller_id, controller_epoch=quorum.leader_epoch)


async def unregister_broker(client: Client, broker_id: int) -> Outcome:
    """Remove a broker from the metadata of a KRaft cluster."""
    answer = await change_by_controller(client, UnregisterBrokerRequest(broker_id=broker_id))
    return outcome(str(broker_id), answer.error_code, answer.error_message)


def find_cluster_id(session: Session) -> str | None:
    """The id of the session's cluster; None if its brokers have none (before 0.10.1)."""
    return ask(session, describe_cluster).cluster_id
