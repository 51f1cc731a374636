"""Delete the records before an offset (KIP-107).

Versions:
    v2 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DeleteRecordsPartition(Struct):
    partition_index: int = wire("int32")
    offset: int = wire("int64")


class DeleteRecordsTopic(Struct):
    name: str = wire("string")
    partitions: list[DeleteRecordsPartition] = wire([DeleteRecordsPartition])


class DeleteRecordsRequest(
    Request["DeleteRecordsResponse"], api_key=21, versions=(0, 2), flexible=2
):
    """The new log start offset per partition; -1 is the high watermark."""

    topics: list[DeleteRecordsTopic] = wire([DeleteRecordsTopic])
    timeout_ms: int = wire("int32")


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = wire("int32")
    low_watermark: int = wire("int64")
    error_code: int = wire("int16")


class DeleteRecordsTopicResult(Struct):
    name: str = wire("string")
    partitions: list[DeleteRecordsPartitionResult] = wire([DeleteRecordsPartitionResult])


class DeleteRecordsResponse(Response, versions=(0, 2), flexible=2):
    """The low watermark after it."""

    throttle_time_ms: int = wire("int32")
    topics: list[DeleteRecordsTopicResult] = wire([DeleteRecordsTopicResult])
