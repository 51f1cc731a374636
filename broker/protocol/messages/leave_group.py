"""Leave a group.

Versions:
    v1 throttle time
    v3 several members at once (KIP-345)
    v4 flexible
    v5 reason (KIP-800)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class MemberIdentity(Struct):
    member_id: str = wire("string", since=3)
    group_instance_id: str | None = wire("string", since=3, nullable=3, default=None)
    reason: str | None = wire("string", since=5, nullable=5, default=None, ignorable=True)


class LeaveGroupRequest(Request["LeaveGroupResponse"], api_key=13, versions=(0, 5), flexible=4):
    """The members that leave."""

    group_id: str = wire("string")
    member_id: str = wire("string", until=2)
    members: list[MemberIdentity] = wire([MemberIdentity], since=3)


class MemberResponse(Struct):
    member_id: str = wire("string", since=3)
    group_instance_id: str | None = wire("string", since=3, nullable=3)
    error_code: int = wire("int16", since=3)


class LeaveGroupResponse(Response, versions=(0, 5), flexible=4):
    """The error of each member."""

    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    error_code: int = wire("int16")
    members: list[MemberResponse] = wire([MemberResponse], since=3)
