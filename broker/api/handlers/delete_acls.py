"""Handle DeleteAcls (KIP-140).

Versions:
    v1 pattern types (KIP-290); clients wait out a throttle time themselves, after the response
       (KIP-219)
    v2 flexible
    v3 user resources (KIP-373)

Deliberately missing: an authorizer. Without one the error is SECURITY_DISABLED, as in Kafka.
"""

from broker.api.acl_requests import NO_AUTHORIZER, check_known
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """SECURITY_DISABLED for each filter; CloseConnection if one has an UNKNOWN element."""
    for acl in request.filters:
        check_known(
            acl.resource_type_filter, acl.pattern_type_filter, acl.operation, acl.permission_type
        )
    return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def _refused(
    request: DeleteAclsRequest, code: ErrorCode, message: str | None
) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=code, error_message=message)
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))


def error_response(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
    """The error on every filter; there is no other place for it."""
    return _refused(request, code, None)
