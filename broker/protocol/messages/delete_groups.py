"""Delete empty groups (KIP-229).

Versions:
    v2 flexible
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DeleteGroupsRequest(Request["DeleteGroupsResponse"], api_key=42, versions=(0, 2), flexible=2):
    """The groups to delete."""

    groups_names: list[str] = wire("[]string")


class DeletableGroupResult(Struct):
    group_id: str = wire("string")
    error_code: int = wire("int16")


class DeleteGroupsResponse(Response, versions=(0, 2), flexible=2):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    results: list[DeletableGroupResult] = wire([DeletableGroupResult])
