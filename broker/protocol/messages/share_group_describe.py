"""State and members of share groups (KIP-932): only KRaft clusters from Kafka 4.1 on answer.

Versions:
    v1 the first stable version; v0 of Kafka 3.9 and 4.0 is the same and was never enabled
"""

from broker.protocol.messages.consumer_group_describe import Assignment
from broker.protocol.schema import Request, Response, Struct, wire


class ShareGroupDescribeRequest(
    Request["ShareGroupDescribeResponse"], api_key=77, versions=(0, 1), flexible=0
):
    """The groups to describe."""

    group_ids: list[str] = wire("[]string")
    include_authorized_operations: bool = wire("bool")


class Member(Struct):
    member_id: str = wire("string")
    rack_id: str | None = wire("string", nullable=0, default=None)
    member_epoch: int = wire("int32")
    client_id: str = wire("string")
    client_host: str = wire("string")
    subscribed_topic_names: list[str] = wire("[]string")
    assignment: Assignment = wire(Assignment)


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


class ShareGroupDescribeResponse(Response, versions=(0, 1), flexible=0):
    """The state of each."""

    throttle_time_ms: int = wire("int32")
    groups: list[DescribedGroup] = wire([DescribedGroup])
