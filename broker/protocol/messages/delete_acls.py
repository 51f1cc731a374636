"""Delete ACLs (KIP-140).

Versions:
    v1 pattern types (KIP-290)
    v2 flexible
    v3 user resources (KIP-373)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DeleteAclsFilter(Struct):
    resource_type_filter: int = wire("int8")
    resource_name_filter: str | None = wire("string", nullable=0)
    pattern_type_filter: int = wire("int8", since=1, default=3)
    principal_filter: str | None = wire("string", nullable=0)
    host_filter: str | None = wire("string", nullable=0)
    operation: int = wire("int8")
    permission_type: int = wire("int8")


class DeleteAclsRequest(Request["DeleteAclsResponse"], api_key=31, versions=(0, 3), flexible=2):
    """Filters for the ACLs to delete."""

    filters: list[DeleteAclsFilter] = wire([DeleteAclsFilter])


class DeleteAclsMatchingAcl(Struct):
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    pattern_type: int = wire("int8", since=1, default=3)
    principal: str = wire("string")
    host: str = wire("string")
    operation: int = wire("int8")
    permission_type: int = wire("int8")


class DeleteAclsFilterResult(Struct):
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    matching_acls: list[DeleteAclsMatchingAcl] = wire([DeleteAclsMatchingAcl])


class DeleteAclsResponse(Response, versions=(0, 3), flexible=2):
    """What each filter matched."""

    throttle_time_ms: int = wire("int32")
    filter_results: list[DeleteAclsFilterResult] = wire([DeleteAclsFilterResult])
