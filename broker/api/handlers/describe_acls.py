"""Handle DescribeAcls (KIP-140).

Versions:
    v1 pattern types (KIP-290); clients wait out a throttle time themselves, after the response
       (KIP-219)
    v2 flexible
    v3 user resources (KIP-373)

Deliberately missing: an authorizer. Without one the error is SECURITY_DISABLED, as in Kafka.
"""

from broker.api.acl_requests import check_known
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """SECURITY_DISABLED; CloseConnection for a filter with an UNKNOWN element."""
    check_known(
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    )
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="No Authorizer is configured on the broker",
    )


def error_response(request: DescribeAclsRequest, code: ErrorCode) -> DescribeAclsResponse:
    """The error, without ACLs."""
    return DescribeAclsResponse(error_code=code, error_message=None)
