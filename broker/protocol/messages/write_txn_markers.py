"""The transaction coordinator has leaders write COMMIT or ABORT (KIP-98).

Versions:
    v1 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class WritableTxnMarkerTopic(Struct):
    name: str = wire("string")
    partition_indexes: list[int] = wire("[]int32")


class WritableTxnMarker(Struct):
    producer_id: int = wire("int64")
    producer_epoch: int = wire("int16")
    transaction_result: bool = wire("bool")
    topics: list[WritableTxnMarkerTopic] = wire([WritableTxnMarkerTopic])
    coordinator_epoch: int = wire("int32")


class WriteTxnMarkersRequest(
    Request["WriteTxnMarkersResponse"], api_key=27, versions=(0, 1), flexible=1
):
    """Markers to write."""

    markers: list[WritableTxnMarker] = wire([WritableTxnMarker])


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")


class WritableTxnMarkerTopicResult(Struct):
    name: str = wire("string")
    partitions: list[WritableTxnMarkerPartitionResult] = wire([WritableTxnMarkerPartitionResult])


class WritableTxnMarkerResult(Struct):
    producer_id: int = wire("int64")
    topics: list[WritableTxnMarkerTopicResult] = wire([WritableTxnMarkerTopicResult])


class WriteTxnMarkersResponse(Response, versions=(0, 1), flexible=1):
    """The error of each partition."""

    markers: list[WritableTxnMarkerResult] = wire([WritableTxnMarkerResult])
