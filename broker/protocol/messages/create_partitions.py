"""Add partitions to topics (KIP-195).

Versions:
    v2 flexible
    v3 THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = wire("[]int32")


class CreatePartitionsTopic(Struct):
    name: str = wire("string")
    count: int = wire("int32")
    assignments: list[CreatePartitionsAssignment] | None = wire(
        [CreatePartitionsAssignment], nullable=0
    )


class CreatePartitionsRequest(
    Request["CreatePartitionsResponse"], api_key=37, versions=(0, 3), flexible=2
):
    """The new number of partitions of each topic."""

    topics: list[CreatePartitionsTopic] = wire([CreatePartitionsTopic])
    timeout_ms: int = wire("int32")
    validate_only: bool = wire("bool")


class CreatePartitionsTopicResult(Struct):
    name: str = wire("string")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0, default=None)


class CreatePartitionsResponse(Response, versions=(0, 3), flexible=2):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    results: list[CreatePartitionsTopicResult] = wire([CreatePartitionsTopicResult])
