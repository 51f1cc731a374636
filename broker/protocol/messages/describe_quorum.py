"""The state of a KRaft quorum (KIP-595): only a KRaft cluster answers.

Versions:
    v1 timestamps of replicas (KIP-836)
    v2 directory ids and listeners (KIP-853)
"""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class RequestPartitionData(Struct):
    partition_index: int = wire("int32")


class RequestTopicData(Struct):
    topic_name: str = wire("string")
    partitions: list[RequestPartitionData] = wire([RequestPartitionData])


class DescribeQuorumRequest(
    Request["DescribeQuorumResponse"], api_key=55, versions=(0, 2), flexible=0
):
    """The metadata partition."""

    topics: list[RequestTopicData] = wire([RequestTopicData])


class ReplicaState(Struct):
    replica_id: int = wire("int32")
    replica_directory_id: Uuid = wire("uuid", since=2)
    log_end_offset: int = wire("int64")
    last_fetch_timestamp: int = wire("int64", since=1, default=-1, ignorable=True)
    last_caught_up_timestamp: int = wire("int64", since=1, default=-1, ignorable=True)


class ResponsePartitionData(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", since=2, nullable=2, ignorable=True)
    leader_id: int = wire("int32")
    leader_epoch: int = wire("int32")
    high_watermark: int = wire("int64")
    current_voters: list[ReplicaState] = wire([ReplicaState])
    observers: list[ReplicaState] = wire([ReplicaState])


class ResponseTopicData(Struct):
    topic_name: str = wire("string")
    partitions: list[ResponsePartitionData] = wire([ResponsePartitionData])


class Listener(Struct):
    name: str = wire("string", since=2)
    host: str = wire("string", since=2)
    port: int = wire("uint16", since=2)


class Node(Struct):
    node_id: int = wire("int32", since=2)
    listeners: list[Listener] = wire([Listener], since=2)


class DescribeQuorumResponse(Response, versions=(0, 2), flexible=0):
    """Leader, voters and observers."""

    error_code: int = wire("int16")
    error_message: str | None = wire("string", since=2, nullable=2, ignorable=True)
    topics: list[ResponseTopicData] = wire([ResponseTopicData])
    nodes: list[Node] = wire([Node], since=2)
