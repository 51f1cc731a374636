"""Sizes of replicas in a broker's log directories (KIP-113).

Versions:
    v2 flexible
    v3 an error for the whole response
    v4 total and usable bytes (KIP-827)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DescribableLogDirTopic(Struct):
    topic: str = wire("string")
    partitions: list[int] = wire("[]int32")


class DescribeLogDirsRequest(
    Request["DescribeLogDirsResponse"], api_key=35, versions=(0, 4), flexible=2
):
    """The partitions to describe; null for all."""

    topics: list[DescribableLogDirTopic] | None = wire([DescribableLogDirTopic], nullable=0)


class DescribeLogDirsPartition(Struct):
    partition_index: int = wire("int32")
    partition_size: int = wire("int64")
    offset_lag: int = wire("int64")
    is_future_key: bool = wire("bool")


class DescribeLogDirsTopic(Struct):
    name: str = wire("string")
    partitions: list[DescribeLogDirsPartition] = wire([DescribeLogDirsPartition])


class DescribeLogDirsResult(Struct):
    error_code: int = wire("int16")
    log_dir: str = wire("string")
    topics: list[DescribeLogDirsTopic] = wire([DescribeLogDirsTopic])
    total_bytes: int = wire("int64", since=4, default=-1, ignorable=True)
    usable_bytes: int = wire("int64", since=4, default=-1, ignorable=True)


class DescribeLogDirsResponse(Response, versions=(0, 4), flexible=2):
    """The replicas in each directory."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16", since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = wire([DescribeLogDirsResult])
