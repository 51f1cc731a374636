"""The controller tells a broker about the cluster, for its answers to Metadata.

Versions:
    v1 several endpoints per broker (KIP-103)
    v2 racks
    v3 listener names
    v4 offline replicas (KIP-112)
    v5 grouped by topic, broker epoch (KIP-380)
    v6 flexible
    v7 topic ids (KIP-516)
    v8 sent by a KRaft controller (KIP-866)
"""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class UpdateMetadataPartitionState(Struct):
    topic_name: str = wire("string", until=4, ignorable=True)
    partition_index: int = wire("int32")
    controller_epoch: int = wire("int32")
    leader: int = wire("int32")
    leader_epoch: int = wire("int32")
    isr: list[int] = wire("[]int32")
    zk_version: int = wire("int32")
    replicas: list[int] = wire("[]int32")
    offline_replicas: list[int] = wire("[]int32", since=4, ignorable=True)


class UpdateMetadataTopicState(Struct):
    topic_name: str = wire("string", since=5)
    topic_id: Uuid = wire("uuid", since=7, ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = wire(
        [UpdateMetadataPartitionState], since=5
    )


class UpdateMetadataEndpoint(Struct):
    port: int = wire("int32", since=1)
    host: str = wire("string", since=1)
    listener: str = wire("string", since=3, ignorable=True)
    security_protocol: int = wire("int16", since=1)


class UpdateMetadataBroker(Struct):
    id: int = wire("int32")
    v0_host: str = wire("string", until=0, ignorable=True)
    v0_port: int = wire("int32", until=0, ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = wire(
        [UpdateMetadataEndpoint], since=1, ignorable=True
    )
    rack: str | None = wire("string", since=2, nullable=0, ignorable=True)


class UpdateMetadataRequest(
    Request["UpdateMetadataResponse"], api_key=6, versions=(0, 8), flexible=6
):
    """Partition states and live brokers."""

    controller_id: int = wire("int32")
    is_k_raft_controller: bool = wire("bool", since=8)
    type: int = wire("int8", since=8, tag=0)
    controller_epoch: int = wire("int32")
    broker_epoch: int = wire("int64", since=5, default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = wire(
        [UpdateMetadataPartitionState], until=4
    )
    topic_states: list[UpdateMetadataTopicState] = wire([UpdateMetadataTopicState], since=5)
    live_brokers: list[UpdateMetadataBroker] = wire([UpdateMetadataBroker])


class UpdateMetadataResponse(Response, versions=(0, 8), flexible=6):
    """The error."""

    error_code: int = wire("int16")
