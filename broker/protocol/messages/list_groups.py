"""The groups a broker coordinates.

Versions:
    v1 throttle time
    v3 flexible
    v4 states (KIP-518)
    v5 types (KIP-848)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class ListGroupsRequest(Request["ListGroupsResponse"], api_key=16, versions=(0, 5), flexible=3):
    """The states and types to list; empty for all."""

    states_filter: list[str] = wire("[]string", since=4)
    types_filter: list[str] = wire("[]string", since=5)


class ListedGroup(Struct):
    group_id: str = wire("string")
    protocol_type: str = wire("string")
    group_state: str = wire("string", since=4, ignorable=True)
    group_type: str = wire("string", since=5, ignorable=True)


class ListGroupsResponse(Response, versions=(0, 5), flexible=3):
    """The groups."""

    throttle_time_ms: int = wire("int32", since=1, ignorable=True)
    error_code: int = wire("int16")
    groups: list[ListedGroup] = wire([ListedGroup])
