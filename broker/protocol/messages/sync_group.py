"""Exchange assignments: the leader gives all, each member gets its own.

Versions:
    v1 throttle time
    v3 static members (KIP-345)
    v4 flexible
    v5 protocol type and name (KIP-559)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class SyncGroupRequestAssignment(Struct):
    member_id: str = wire("string")
    assignment: bytes = wire("bytes")


class SyncGroupRequest(Request["SyncGroupResponse"], api_key=14, versions=(0, 5), flexible=4):
    """The leader's assignments; empty for other members."""

    group_id: str = wire("string")
    generation_id: int = wire("int32")
    member_id: str = wire("string")
    group_instance_id: str | None = wire("string", since=3, nullable=3, default=None)
    protocol_type: str | None = wire("string", since=5, nullable=5, default=None, ignorable=True)
    protocol_name: str | None = wire("string", since=5, nullable=5, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = wire([SyncGroupRequestAssignment])


class SyncGroupResponse(Response, versions=(0, 5), flexible=4):
    """The member's assignment."""

    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    error_code: int = wire("int16")
    protocol_type: str | None = wire("string", since=5, nullable=5, default=None, ignorable=True)
    protocol_name: str | None = wire("string", since=5, nullable=5, default=None, ignorable=True)
    assignment: bytes = wire("bytes")
