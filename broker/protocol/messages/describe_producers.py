"""The producers that are active on partitions (KIP-664)."""

from broker.protocol.schema import Request, Response, Struct, wire


class TopicRequest(Struct):
    name: str = wire("string")
    partition_indexes: list[int] = wire("[]int32")


class DescribeProducersRequest(
    Request["DescribeProducersResponse"], api_key=61, versions=(0, 0), flexible=0
):
    """The partitions to describe."""

    topics: list[TopicRequest] = wire([TopicRequest])


class ProducerState(Struct):
    producer_id: int = wire("int64")
    producer_epoch: int = wire("int32")
    last_sequence: int = wire("int32", default=-1)
    last_timestamp: int = wire("int64", default=-1)
    coordinator_epoch: int = wire("int32")
    current_txn_start_offset: int = wire("int64", default=-1)


class PartitionResponse(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0, default=None)
    active_producers: list[ProducerState] = wire([ProducerState])


class TopicResponse(Struct):
    name: str = wire("string")
    partitions: list[PartitionResponse] = wire([PartitionResponse])


class DescribeProducersResponse(Response, versions=(0, 0), flexible=0):
    """Their producers and open transactions."""

    throttle_time_ms: int = wire("int32")
    topics: list[TopicResponse] = wire([TopicResponse])
