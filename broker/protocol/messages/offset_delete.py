"""Delete a group's offsets for topics it no longer reads (KIP-496)."""

from broker.protocol.schema import Request, Response, Struct, wire


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = wire("int32")


class OffsetDeleteRequestTopic(Struct):
    name: str = wire("string")
    partitions: list[OffsetDeleteRequestPartition] = wire([OffsetDeleteRequestPartition])


class OffsetDeleteRequest(Request["OffsetDeleteResponse"], api_key=47, versions=(0, 0)):
    """The partitions whose offsets are deleted."""

    group_id: str = wire("string")
    topics: list[OffsetDeleteRequestTopic] = wire([OffsetDeleteRequestTopic])


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


class OffsetDeleteResponseTopic(Struct):
    name: str = wire("string")
    partitions: list[OffsetDeleteResponsePartition] = wire([OffsetDeleteResponsePartition])


class OffsetDeleteResponse(Response, versions=(0, 0)):
    """The error of each partition."""

    error_code: int = wire("int16")
    throttle_time_ms: int = wire("int32")
    topics: list[OffsetDeleteResponseTopic] = wire([OffsetDeleteResponseTopic])
