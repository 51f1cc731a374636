"""State and members of groups of the new protocol (KIP-848)."""

from broker.model import Uuid
from broker.protocol.schema import Request, Response, Struct, wire


class ConsumerGroupDescribeRequest(
    Request["ConsumerGroupDescribeResponse"], api_key=69, versions=(0, 0), flexible=0
):
    """The groups to describe."""

    group_ids: list[str] = wire("[]string")
    include_authorized_operations: bool = wire("bool")


class TopicPartitions(Struct):
    topic_id: Uuid = wire("uuid")
    topic_name: str = wire("string")
    partitions: list[int] = wire("[]int32")


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = wire([TopicPartitions])


class Member(Struct):
    member_id: str = wire("string")
    instance_id: str | None = wire("string", nullable=0, default=None)
    rack_id: str | None = wire("string", nullable=0, default=None)
    member_epoch: int = wire("int32")
    client_id: str = wire("string")
    client_host: str = wire("string")
    subscribed_topic_names: list[str] = wire("[]string")
    subscribed_topic_regex: str | None = wire("string", nullable=0, default=None)
    assignment: Assignment = wire(Assignment)
    target_assignment: Assignment = wire(Assignment)


class DescribedGroup(Struct):
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0, default=None)
    group_id: str = wire("string")
    group_state: str = wire("string")
    group_epoch: int = wire("int32")
    assignment_epoch: int = wire("int32")
    assignor_name: str = wire("string")
    members: list[Member] = wire([Member])
    authorized_operations: int = wire("int32", default=-0x80000000)


class ConsumerGroupDescribeResponse(Response, versions=(0, 0), flexible=0):
    """The state of each."""

    throttle_time_ms: int = wire("int32")
    groups: list[DescribedGroup] = wire([DescribedGroup])
