"""The one request of the new group protocol's members (KIP-848).

Versions:
    v1 of the response: unknown regular expressions
"""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class TopicPartitions(Struct):
    topic_id: Uuid = wire("uuid")
    partitions: list[int] = wire("[]int32")


class ConsumerGroupHeartbeatRequest(
    Request["ConsumerGroupHeartbeatResponse"], api_key=68, versions=(0, 0), flexible=0
):
    """The member's subscription and current assignment."""

    group_id: str = wire("string")
    member_id: str = wire("string")
    member_epoch: int = wire("int32")
    instance_id: str | None = wire("string", nullable=0, default=None)
    rack_id: str | None = wire("string", nullable=0, default=None)
    rebalance_timeout_ms: int = wire("int32", default=-1)
    subscribed_topic_names: list[str] | None = wire("[]string", nullable=0, default=None)
    subscribed_topic_regex: str | None = wire("string", since=1, nullable=1, default=None)
    server_assignor: str | None = wire("string", nullable=0, default=None)
    topic_partitions: list[TopicPartitions] | None = wire(
        [TopicPartitions], nullable=0, default=None
    )


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = wire([TopicPartitions])


class ConsumerGroupHeartbeatResponse(Response, versions=(0, 1), flexible=0):
    """The target assignment."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0, default=None)
    member_id: str | None = wire("string", nullable=0, default=None)
    member_epoch: int = wire("int32")
    heartbeat_interval_ms: int = wire("int32")
    assignment: Assignment | None = wire(Assignment, nullable=0, default=None)
