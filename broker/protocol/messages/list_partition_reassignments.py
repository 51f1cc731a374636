"""Reassignments in progress (KIP-455)."""

from broker.protocol.schema import Request, Response, Struct, wire


class ListPartitionReassignmentsTopics(Struct):
    name: str = wire("string")
    partition_indexes: list[int] = wire("[]int32")


class ListPartitionReassignmentsRequest(
    Request["ListPartitionReassignmentsResponse"], api_key=46, versions=(0, 0), flexible=0
):
    """The partitions to describe; null for all."""

    timeout_ms: int = wire("int32", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = wire(
        [ListPartitionReassignmentsTopics], nullable=0, default=None
    )


class OngoingPartitionReassignment(Struct):
    partition_index: int = wire("int32")
    replicas: list[int] = wire("[]int32")
    adding_replicas: list[int] = wire("[]int32")
    removing_replicas: list[int] = wire("[]int32")


class OngoingTopicReassignment(Struct):
    name: str = wire("string")
    partitions: list[OngoingPartitionReassignment] = wire([OngoingPartitionReassignment])


class ListPartitionReassignmentsResponse(Response, versions=(0, 0), flexible=0):
    """The partitions that are being reassigned."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    topics: list[OngoingTopicReassignment] = wire([OngoingTopicReassignment])
