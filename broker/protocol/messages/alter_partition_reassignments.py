"""Begin or cancel reassignments (KIP-455)."""

from broker.protocol.schema import Request, Response, Struct, wire


class ReassignablePartition(Struct):
    partition_index: int = wire("int32")
    replicas: list[int] | None = wire("[]int32", nullable=0, default=None)


class ReassignableTopic(Struct):
    name: str = wire("string")
    partitions: list[ReassignablePartition] = wire([ReassignablePartition])


class AlterPartitionReassignmentsRequest(
    Request["AlterPartitionReassignmentsResponse"], api_key=45, versions=(0, 0), flexible=0
):
    """Target replicas per partition; null cancels."""

    timeout_ms: int = wire("int32", default=60000)
    topics: list[ReassignableTopic] = wire([ReassignableTopic])


class ReassignablePartitionResponse(Struct):
    partition_index: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)


class ReassignableTopicResponse(Struct):
    name: str = wire("string")
    partitions: list[ReassignablePartitionResponse] = wire([ReassignablePartitionResponse])


class AlterPartitionReassignmentsResponse(Response, versions=(0, 0), flexible=0):
    """The error of each partition."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    responses: list[ReassignableTopicResponse] = wire([ReassignableTopicResponse])
