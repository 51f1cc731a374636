"""Stay a member of a group.

Versions:
    v1 throttle time
    v3 static members (KIP-345)
    v4 flexible
"""

from broker.protocol.schema import Request, Response, wire


class HeartbeatRequest(Request["HeartbeatResponse"], api_key=12, versions=(0, 4), flexible=4):
    """The member, and the generation it is in."""

    group_id: str = wire("string")
    generation_id: int = wire("int32")
    member_id: str = wire("string")
    group_instance_id: str | None = wire("string", since=3, nullable=3, default=None)


class HeartbeatResponse(Response, versions=(0, 4), flexible=4):
    """REBALANCE_IN_PROGRESS if the member must rejoin."""

    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    error_code: int = wire("int16")
