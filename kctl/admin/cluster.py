"""Who is in the cluster."""

from dataclasses import dataclass

from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest


@dataclass(frozen=True)
class Broker:
    """One broker, as the cluster's metadata names it."""

    id: int
    host: str
    port: int
    rack: str | None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Cluster:
    """The cluster's name and members; `controller_id` is None while there is no controller."""

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[Broker, ...]


async def describe_cluster(client: Client) -> Cluster:
    """The cluster, its brokers in order of their ids.

    Asked with Metadata and no topics, which every Kafka since 0.10 answers.
    """
    answer = await client.send(MetadataRequest(topics=[]))
    brokers = [Broker(b.node_id, b.host, b.port, b.rack) for b in answer.brokers]
    return Cluster(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id if answer.controller_id >= 0 else None,
        brokers=tuple(sorted(brokers, key=lambda broker: broker.id)),
    )
