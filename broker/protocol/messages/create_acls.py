"""Create ACLs (KIP-140).

Versions:
    v1 pattern types (KIP-290)
    v2 flexible
    v3 user resources (KIP-373)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class AclCreation(Struct):
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    resource_pattern_type: int = wire("int8", since=1, default=3)
    principal: str = wire("string")
    host: str = wire("string")
    operation: int = wire("int8")
    permission_type: int = wire("int8")


class CreateAclsRequest(Request["CreateAclsResponse"], api_key=30, versions=(0, 3), flexible=2):
    """ACLs to create."""

    creations: list[AclCreation] = wire([AclCreation])


class AclCreationResult(Struct):
    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)


class CreateAclsResponse(Response, versions=(0, 3), flexible=2):
    """The result of each."""

    throttle_time_ms: int = wire("int32")
    results: list[AclCreationResult] = wire([AclCreationResult])
