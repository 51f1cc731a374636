"""State and members of groups.

Versions:
    v1 throttle time
    v3 authorized operations (KIP-430)
    v4 static members (KIP-345)
    v5 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DescribeGroupsRequest(
    Request["DescribeGroupsResponse"], api_key=15, versions=(0, 5), flexible=5
):
    """The groups to describe."""

    groups: list[str] = wire("[]string")
    include_authorized_operations: bool = wire("bool", since=3)


class DescribedGroupMember(Struct):
    member_id: str = wire("string")
    group_instance_id: str | None = wire(
        "string", since=4, nullable=4, default=None, ignorable=True
    )
    client_id: str = wire("string")
    client_host: str = wire("string")
    member_metadata: bytes = wire("bytes")
    member_assignment: bytes = wire("bytes")


class DescribedGroup(Struct):
    error_code: int = wire("int16")
    group_id: str = wire("string")
    group_state: str = wire("string")
    protocol_type: str = wire("string")
    protocol_data: str = wire("string")
    members: list[DescribedGroupMember] = wire([DescribedGroupMember])
    authorized_operations: int = wire("int32", since=3, default=-0x80000000)


class DescribeGroupsResponse(Response, versions=(0, 5), flexible=5):
    """Each group; one that does not exist is Dead."""

    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    groups: list[DescribedGroup] = wire([DescribedGroup])
