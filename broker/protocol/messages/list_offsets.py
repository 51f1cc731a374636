"""Find offsets: earliest, latest, or by time.

Versions:
    v0 several offsets per partition
    v1 one offset, with its timestamp (KIP-79)
    v2 isolation level (KIP-98)
    v4 leader epochs (KIP-320)
    v6 flexible
    v7 offset of the largest timestamp (KIP-734)
    v8, v9 tiered storage (KIP-405, KIP-1005)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class ListOffsetsPartition(Struct):
    partition_index: int = wire("int32")
    current_leader_epoch: int = wire("int32", since=4, default=-1, ignorable=True)
    timestamp: int = wire("int64")
    max_num_offsets: int = wire("int32", until=0, default=1)


class ListOffsetsTopic(Struct):
    name: str = wire("string")
    partitions: list[ListOffsetsPartition] = wire([ListOffsetsPartition])


class ListOffsetsRequest(Request["ListOffsetsResponse"], api_key=2, versions=(0, 9), flexible=6):
    """Timestamps to look up, or one of the negative ones that name a place in the log.

    -1 latest, -2 earliest, -3 the largest timestamp, -4 earliest local, -5 latest tiered.
    """

    replica_id: int = wire("int32")
    isolation_level: int = wire("int8", since=2)
    topics: list[ListOffsetsTopic] = wire([ListOffsetsTopic])
    timeout_ms: int = wire("int32", since=10, ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")
    old_style_offsets: list[int] = wire("[]int64", until=0)
    timestamp: int = wire("int64", since=1, default=-1)
    offset: int = wire("int64", since=1, default=-1)
    leader_epoch: int = wire("int32", since=4, default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = wire("string")
    partitions: list[ListOffsetsPartitionResponse] = wire([ListOffsetsPartitionResponse])


class ListOffsetsResponse(Response, versions=(0, 9), flexible=6):
    """The offset, and its timestamp, for each partition."""

    throttle_time_ms: int = wire("int32", since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = wire([ListOffsetsTopicResponse])
