"""Handle DescribeAcls (KIP-140): list the ACLs that match a filter.

Versions:
    v1 pattern types (KIP-290); clients wait out a throttle time themselves, after the response
       (KIP-219)
    v2 flexible
    v3 user resources (KIP-373)

Deliberately missing: nothing. Without an authorizer the error is SECURITY_DISABLED, as in Kafka.
"""

from broker.api.acl_requests import binding_filter, check_filter
from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from broker.security.acls import AclOperation, ResourcePattern


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """List by resource; CloseConnection for a filter with an UNKNOWN element."""
    check_filter(request)
    authorizer = context.services.authorizer
    if authorizer is None:
        return _failed(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    try:
        authorize_cluster(context, AclOperation.DESCRIBE)
    except ApiError as error:
        return _failed(error.code, error.message)
    wanted = binding_filter(request)
    found: dict[ResourcePattern, list[AclDescription]] = {}
    for binding in authorizer.acls:
        if wanted.matches(binding):
            entry = binding.entry
            found.setdefault(binding.pattern, []).append(
                AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission_type,
                )
            )
    return DescribeAclsResponse(
        error_message="", resources=[_resource(*item) for item in found.items()]
    )


def _resource(pattern: ResourcePattern, acls: list[AclDescription]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=acls,
    )


def _failed(code: ErrorCode, message: str | None) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=message)


def error_response(request: DescribeAclsRequest, code: ErrorCode) -> DescribeAclsResponse:
    """The error, without ACLs."""
    return _failed(code, None)
