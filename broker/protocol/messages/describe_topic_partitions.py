"""Partitions of topics, page by page (KIP-966): only a KRaft cluster answers."""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class TopicRequest(Struct):
    name: str = wire("string")


class Cursor(Struct):
    topic_name: str = wire("string")
    partition_index: int = wire("int32")


class DescribeTopicPartitionsRequest(
    Request["DescribeTopicPartitionsResponse"], api_key=75, versions=(0, 0), flexible=0
):
    """Topics, and the position to continue at."""

    topics: list[TopicRequest] = wire([TopicRequest])
    response_partition_limit: int = wire("int32", default=2000)
    cursor: Cursor | None = wire(Cursor, nullable=0, default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = wire("int16")
    partition_index: int = wire("int32")
    leader_id: int = wire("int32")
    leader_epoch: int = wire("int32", default=-1)
    replica_nodes: list[int] = wire("[]int32")
    isr_nodes: list[int] = wire("[]int32")
    eligible_leader_replicas: list[int] | None = wire("[]int32", nullable=0, default=None)
    last_known_elr: list[int] | None = wire("[]int32", nullable=0, default=None)
    offline_replicas: list[int] = wire("[]int32")


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = wire("int16")
    name: str | None = wire("string", nullable=0)
    topic_id: Uuid = wire("uuid")
    is_internal: bool = wire("bool")
    partitions: list[DescribeTopicPartitionsResponsePartition] = wire(
        [DescribeTopicPartitionsResponsePartition]
    )
    topic_authorized_operations: int = wire("int32", default=-0x80000000)


class DescribeTopicPartitionsResponse(Response, versions=(0, 0), flexible=0):
    """A page of topics, and where the next one begins."""

    throttle_time_ms: int = wire("int32")
    topics: list[DescribeTopicPartitionsResponseTopic] = wire(
        [DescribeTopicPartitionsResponseTopic]
    )
    next_cursor: Cursor | None = wire(Cursor, nullable=0, default=None)
