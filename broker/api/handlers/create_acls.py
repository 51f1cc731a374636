"""Handle CreateAcls (KIP-140).

Any broker answers, not only the controller. A response is sent when the ACLs are stored and
effective on this broker; other brokers follow through notifications.

Versions:
    v1 pattern types (KIP-290); clients wait out a throttle time themselves, after the response
       (KIP-219)
    v2 flexible
    v3 user resources (KIP-373)

Deliberately missing: nothing. Without an authorizer the error is SECURITY_DISABLED, as in Kafka.
"""

import re
from typing import Final

from broker.api.acl_requests import NO_AUTHORIZER, check_known
from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.metadata.acl_store import AclStore
from broker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from broker.security.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)

_ILLEGAL_IN_ZOOKEEPER: Final = re.compile(
    "[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]"
)
"""Characters that ZooKeeper does not allow in paths; beyond U+FFFF, Java has two surrogates."""
_UNKNOWN: Final = 0
_ANY: Final = 1
"""Elements of every enumeration of ACLs."""


async def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Create them pattern by pattern; CloseConnection if one has an UNKNOWN element."""
    for acl in request.creations:
        check_known(
            acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type
        )
    store = context.services.acls
    if store is None:
        return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    try:
        authorize_cluster(context, AclOperation.ALTER)
    except ApiError as error:
        return _refused(request, error.code, error.message)
    bindings = [_binding(acl) for acl in request.creations]
    errors = {binding: problem for binding in bindings if (problem := _problem(binding))}
    by_pattern: dict[ResourcePattern, list[AclBinding]] = {}
    for binding in bindings:
        if binding not in errors:
            by_pattern.setdefault(binding.pattern, []).append(binding)
    for pattern, added in by_pattern.items():
        try:
            await _add(store, pattern, [binding.entry for binding in added])
        except ApiError as error:
            errors |= dict.fromkeys(added, error)
    return CreateAclsResponse(results=[_result(errors.get(binding)) for binding in bindings])


def _binding(acl: AclCreation) -> AclBinding:
    """The ACL; UNKNOWN_SERVER_ERROR, as in Kafka, for elements that only filters may contain."""
    binding = AclBinding(
        ResourcePattern(
            ResourceType(acl.resource_type),
            acl.resource_name,
            PatternType(acl.resource_pattern_type),
        ),
        AccessControlEntry(
            acl.principal,
            acl.host,
            AclOperation(acl.operation),
            AclPermissionType(acl.permission_type),
        ),
    )
    if binding.pattern.pattern_type is PatternType.MATCH or _ANY in _elements(binding):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "an ACL cannot contain ANY or MATCH")
    return binding


def _elements(
    binding: AclBinding,
) -> tuple[ResourceType, PatternType, AclOperation, AclPermissionType]:
    pattern, entry = binding
    return (
        pattern.resource_type,
        pattern.pattern_type,
        entry.operation,
        entry.permission_type,
    )


def _problem(binding: AclBinding) -> ApiError | None:
    pattern = binding.pattern
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        problem = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return ApiError(ErrorCode.INVALID_REQUEST, problem)
    if not pattern.name:
        return ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    if "/" in pattern.name or _UNKNOWN in _elements(binding):
        return ApiError(ErrorCode.INVALID_REQUEST, "Failed to create ACL")
    return None


async def _add(
    store: AclStore, pattern: ResourcePattern, entries: list[AccessControlEntry]
) -> None:
    """Kafka fails on principals without a type, and ZooKeeper on some characters."""
    if any(":" not in entry.principal for entry in entries):
        problem = "expected a string in format principalType:principalName"
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, problem)
    if _ILLEGAL_IN_ZOOKEEPER.search(pattern.name):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "no znode can have this name")
    await store.update(pattern, lambda current: current + entries)


def _result(error: ApiError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_message="")
    is_unexpected = error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    return AclCreationResult(
        error_code=error.code, error_message=None if is_unexpected else error.message
    )


def _refused(
    request: CreateAclsRequest, code: ErrorCode, message: str | None
) -> CreateAclsResponse:
    result = AclCreationResult(error_code=code, error_message=message)
    return CreateAclsResponse(results=[result] * len(request.creations))


def error_response(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
    """The error on every ACL; there is no other place for it."""
    return _refused(request, code, None)
