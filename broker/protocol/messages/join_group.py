"""Join a group; answered when everybody has joined.

Versions:
    v1 rebalance timeout
    v2 throttle time
    v4 a new member gets its id first (KIP-394)
    v5 static members (KIP-345)
    v6 flexible
    v7 protocol type (KIP-559)
    v8 reason (KIP-800)
    v9 the leader may skip assignment (KIP-814)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class JoinGroupRequestProtocol(Struct):
    name: str = wire("string")
    metadata: bytes = wire("bytes")


class JoinGroupRequest(Request["JoinGroupResponse"], api_key=11, versions=(0, 9), flexible=6):
    """A member and the protocols it supports."""

    group_id: str = wire("string")
    session_timeout_ms: int = wire("int32")
    rebalance_timeout_ms: int = wire("int32", since=1, default=-1, ignorable=True)
    member_id: str = wire("string")
    group_instance_id: str | None = wire("string", since=5, nullable=5, default=None)
    protocol_type: str = wire("string")
    protocols: list[JoinGroupRequestProtocol] = wire([JoinGroupRequestProtocol])
    reason: str | None = wire("string", since=8, nullable=8, default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = wire("string")
    group_instance_id: str | None = wire(
        "string", since=5, nullable=5, default=None, ignorable=True
    )
    metadata: bytes = wire("bytes")


class JoinGroupResponse(Response, versions=(0, 9), flexible=6):
    """The generation; for the leader also its members."""

    throttle_time_ms: int = wire("int32", since=2, ignorable=True)
    error_code: int = wire("int16")
    generation_id: int = wire("int32", default=-1)
    protocol_type: str | None = wire("string", since=7, nullable=7, default=None, ignorable=True)
    protocol_name: str | None = wire("string", nullable=7)
    leader: str = wire("string")
    skip_assignment: bool = wire("bool", since=9)
    member_id: str = wire("string")
    members: list[JoinGroupResponseMember] = wire([JoinGroupResponseMember])
