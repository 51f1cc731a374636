"""Start offsets of share groups (KIP-932): only KRaft clusters from Kafka 4.1 on answer."""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class RequestTopic(Struct):
    topic_name: str = wire("string")
    partitions: list[int] = wire("[]int32")


class RequestGroup(Struct):
    group_id: str = wire("string")
    topics: list[RequestTopic] | None = wire([RequestTopic], nullable=0)


class DescribeShareGroupOffsetsRequest(
    Request["DescribeShareGroupOffsetsResponse"], api_key=90, versions=(0, 0), flexible=0
):
    """The groups, with some of their topics or (null) all."""

    groups: list[RequestGroup] = wire([RequestGroup])


class ResponsePartition(Struct):
    partition_index: int = wire("int32")
    start_offset: int = wire("int64")
    leader_epoch: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0, default=None, ignorable=True)


class ResponseTopic(Struct):
    topic_name: str = wire("string")
    topic_id: Uuid = wire("uuid")
    partitions: list[ResponsePartition] = wire([ResponsePartition])


class ResponseGroup(Struct):
    group_id: str = wire("string")
    topics: list[ResponseTopic] = wire([ResponseTopic])
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0, default=None, ignorable=True)


class DescribeShareGroupOffsetsResponse(Response, versions=(0, 0), flexible=0):
    """The first offset that each group may still read; -1 if it has none yet."""

    throttle_time_ms: int = wire("int32")
    groups: list[ResponseGroup] = wire([ResponseGroup])
