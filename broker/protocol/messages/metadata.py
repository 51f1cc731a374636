"""Which brokers there are, and which of them leads each partition.

Versions:
    v1 controller, racks, null for all topics
    v2 cluster id (KIP-78)
    v4 auto creation can be switched off (KIP-204)
    v5 offline replicas (KIP-112)
    v7 leader epochs (KIP-320)
    v8 authorized operations (KIP-430)
    v9 flexible
    v10 topic ids (KIP-516)
    v12 lookup by topic id
"""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class MetadataRequestTopic(Struct):
    topic_id: Uuid = wire("uuid", since=10, ignorable=True)
    name: str | None = wire("string", nullable=10)


class MetadataRequest(Request["MetadataResponse"], api_key=3, versions=(0, 12), flexible=9):
    """Topics by name or id; null requests all topics, an empty list none."""

    topics: list[MetadataRequestTopic] | None = wire([MetadataRequestTopic], nullable=1)
    allow_auto_topic_creation: bool = wire("bool", since=4, default=True)
    include_cluster_authorized_operations: bool = wire("bool", since=8, until=10)
    include_topic_authorized_operations: bool = wire("bool", since=8)


class MetadataResponseBroker(Struct):
    node_id: int = wire("int32")
    host: str = wire("string")
    port: int = wire("int32")
    rack: str | None = wire("string", since=1, nullable=1, default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = wire("int16")
    partition_index: int = wire("int32")
    leader_id: int = wire("int32")
    leader_epoch: int = wire("int32", since=7, default=-1, ignorable=True)
    replica_nodes: list[int] = wire("[]int32")
    isr_nodes: list[int] = wire("[]int32")
    offline_replicas: list[int] = wire("[]int32", since=5, ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = wire("int16")
    name: str | None = wire("string", nullable=12)
    topic_id: Uuid = wire("uuid", since=10, ignorable=True)
    is_internal: bool = wire("bool", since=1, ignorable=True)
    partitions: list[MetadataResponsePartition] = wire([MetadataResponsePartition])
    topic_authorized_operations: int = wire("int32", since=8, default=-0x80000000)


class MetadataResponse(Response, versions=(0, 12), flexible=9):
    """Brokers, controller, and the partitions of the requested topics."""

    throttle_time_ms: int = wire("int32", since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = wire([MetadataResponseBroker])
    cluster_id: str | None = wire("string", since=2, nullable=2, default=None, ignorable=True)
    controller_id: int = wire("int32", since=1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = wire([MetadataResponseTopic])
    cluster_authorized_operations: int = wire("int32", since=8, until=10, default=-0x80000000)
