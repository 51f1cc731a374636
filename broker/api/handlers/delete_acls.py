"""Handle DeleteAcls (KIP-140): delete the ACLs that match filters.

Any broker answers, not only the controller.

Versions:
    v1 pattern types (KIP-290); clients wait out a throttle time themselves, after the response
       (KIP-219)
    v2 flexible
    v3 user resources (KIP-373)

Deliberately missing: nothing. Without an authorizer the error is SECURITY_DISABLED, as in Kafka.
"""

from collections.abc import Sequence

from broker.api.acl_requests import NO_AUTHORIZER, binding_filter, check_filter
from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.metadata.acl_store import AclStore
from broker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from broker.security.acls import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    ResourcePattern,
)


async def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Delete pattern by pattern; an ACL is reported with the first filter that matches it.

    CloseConnection if a filter has an UNKNOWN element.
    """
    for asked in request.filters:
        check_filter(asked)
    authorizer, store = context.services.authorizer, context.services.acls
    if authorizer is None or store is None:
        return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    try:
        authorize_cluster(context, AclOperation.ALTER)
    except ApiError as error:
        return _refused(request, error.code, error.message)
    filters = [binding_filter(asked) for asked in request.filters]
    # Patterns that a filter names are read from the store, whether or not this broker knows them.
    named = [pattern for wanted in filters for pattern in wanted.pattern.exact_patterns()]
    deleted: dict[AclBinding, tuple[int, ErrorCode]] = {}
    for pattern in dict.fromkeys([*authorizer.acls.patterns, *named]):
        if any(wanted.pattern.matches(pattern) for wanted in filters):
            deleted |= await _delete(store, pattern, filters)
    return DeleteAclsResponse(
        filter_results=[_matched(number, deleted) for number in range(len(filters))]
    )


async def _delete(
    store: AclStore, pattern: ResourcePattern, filters: Sequence[AclBindingFilter]
) -> dict[AclBinding, tuple[int, ErrorCode]]:
    """The ACLs of a pattern that were deleted, with the number of their filter and an error."""
    found: dict[AclBinding, int] = {}

    def kept(current: list[AccessControlEntry]) -> list[AccessControlEntry]:
        found.clear()
        for entry in current:
            binding = AclBinding(pattern, entry)
            for number, wanted in enumerate(filters):
                if wanted.matches(binding):
                    found.setdefault(binding, number)
        return [entry for entry in current if AclBinding(pattern, entry) not in found]

    code = ErrorCode.NONE
    try:
        await store.update(pattern, kept)
    except ApiError as error:
        code = error.code
    return {binding: (number, code) for binding, number in found.items()}


def _matched(
    number: int, deleted: dict[AclBinding, tuple[int, ErrorCode]]
) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_code=code,
                error_message=None,
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
            for (pattern, entry), (filter_number, code) in deleted.items()
            if filter_number == number
        ],
    )


def _refused(
    request: DeleteAclsRequest, code: ErrorCode, message: str | None
) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=code, error_message=message)
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))


def error_response(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
    """The error on every filter; there is no other place for it."""
    return _refused(request, code, None)
