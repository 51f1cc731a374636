"""List ACLs (KIP-140).

Versions:
    v1 pattern types (KIP-290)
    v2 flexible
    v3 user resources (KIP-373)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DescribeAclsRequest(Request["DescribeAclsResponse"], api_key=29, versions=(0, 3), flexible=2):
    """A filter."""

    resource_type_filter: int = wire("int8")
    resource_name_filter: str | None = wire("string", nullable=0)
    pattern_type_filter: int = wire("int8", since=1, default=3)
    principal_filter: str | None = wire("string", nullable=0)
    host_filter: str | None = wire("string", nullable=0)
    operation: int = wire("int8")
    permission_type: int = wire("int8")


class AclDescription(Struct):
    principal: str = wire("string")
    host: str = wire("string")
    operation: int = wire("int8")
    permission_type: int = wire("int8")


class DescribeAclsResource(Struct):
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    pattern_type: int = wire("int8", since=1, default=3)
    acls: list[AclDescription] = wire([AclDescription])


class DescribeAclsResponse(Response, versions=(0, 3), flexible=2):
    """The ACLs that match, by resource."""

    throttle_time_ms: int = wire("int32")
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    resources: list[DescribeAclsResource] = wire([DescribeAclsResource])
