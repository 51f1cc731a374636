"""Handle CreateAcls (KIP-140).

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
from broker.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """SECURITY_DISABLED for each ACL; CloseConnection if one has an UNKNOWN element."""
    for acl in request.creations:
        check_known(
            acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type
        )
    return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def _refused(
    request: CreateAclsRequest, code: ErrorCode, message: str | None
) -> CreateAclsResponse:
    result = AclCreationResult(error_code=code, error_message=message)
    return CreateAclsResponse(results=[result] * len(request.creations))


def error_response(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
    """The error on every ACL; there is no other place for it."""
    return _refused(request, code, None)
