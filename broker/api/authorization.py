"""Checks of permissions, as handlers make them.

Without an authorizer every check passes, at the cost of one comparison. Handlers that check many
topics use `unauthorized`, which logs each name once, with the number of its occurrences.
"""

from collections.abc import Collection, Iterable
from typing import Final

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.security.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    AclOperation,
    ResourceType,
)
from broker.security.audit import Action, is_logged, log_decision, logs_allowed
from broker.security.authorizer import AclAuthorizer, Client, Decision

NOT_REQUESTED: Final = -0x80000000
"""In place of authorized operations, if the request did not ask for them."""

MESSAGES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""Kafka's messages, where a response has one."""

_NONE: Final[frozenset[str]] = frozenset()
_ALL_OPERATIONS: Final = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in SUPPORTED_OPERATIONS.items()
}


def is_authorized(
    context: RequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    *,
    quiet: bool = False,
) -> bool:
    """Whether the client has a permission; a `quiet` check is not logged when denied."""
    authorizer = context.services.authorizer
    if authorizer is None:
        return True
    return _check(authorizer, context, Action(operation, resource_type, name, 1, True, not quiet))


def is_authorized_on_cluster(
    context: RequestContext, operation: AclOperation, *, quiet: bool = False
) -> bool:
    """Whether the client has a permission on the cluster."""
    return is_authorized(context, operation, ResourceType.CLUSTER, CLUSTER_NAME, quiet=quiet)


def authorize_cluster(context: RequestContext, operation: AclOperation) -> None:
    """CLUSTER_AUTHORIZATION_FAILED unless the client has a permission on the cluster."""
    if not is_authorized_on_cluster(context, operation):
        raise ApiError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, not_authorized(ApiKey(context.api_key))
        )


def not_authorized(api: ApiKey) -> str:
    """The message of `authorize_cluster`; Kafka quotes the whole request."""
    return f"Request {api.display_name} is not authorized."


def authorize_group(context: RequestContext, operation: AclOperation, group_id: str) -> None:
    """GROUP_AUTHORIZATION_FAILED unless the client has a permission on the group."""
    if not is_authorized(context, operation, ResourceType.GROUP, group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def authorize_transactional_id(
    context: RequestContext, operation: AclOperation, transactional_id: str
) -> None:
    """TRANSACTIONAL_ID_AUTHORIZATION_FAILED unless the client has a permission on the id."""
    if not is_authorized(context, operation, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def unauthorized(
    context: RequestContext,
    operation: AclOperation,
    names: Iterable[str],
    resource_type: ResourceType = ResourceType.TOPIC,
    *,
    quiet: bool = False,
) -> Collection[str]:
    """Those of the names (of topics) for which the client does not have a permission."""
    authorizer = context.services.authorizer
    if authorizer is None:
        return _NONE
    client = Client(context.peer.principal, context.peer.host)
    counts: dict[str, int] = {}
    for name in names:  # Counter costs more than the rest for the few topics of a request
        counts[name] = counts.get(name, 0) + 1
    is_audited = logs_allowed()
    denied: set[str] = set()
    for name in counts:
        decision = authorizer.authorize(client, operation, resource_type, name)
        if decision.is_allowed and not is_audited:
            continue
        action = Action(operation, resource_type, name, counts[name], True, not quiet)
        _log(context, client, action, decision)
        if not decision.is_allowed:
            denied.add(name)
    return denied


def may_on_any(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType
) -> bool:
    """Whether the client has a permission on at least one resource of a type."""
    authorizer = context.services.authorizer
    if authorizer is None:
        return True
    client = Client(context.peer.principal, context.peer.host)
    decision = authorizer.authorize_by_resource_type(client, operation, resource_type)
    action = Action(operation, resource_type, "NONE", 0, pattern_type="UNKNOWN")
    if decision.reason != "super user":  # Kafka does not log these
        _log(context, client, action, decision)
    return decision.is_allowed


def authorized_operations(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """The operations that the client may do, as a bit field (KIP-430)."""
    authorizer = context.services.authorizer
    if authorizer is None:
        return _ALL_OPERATIONS[resource_type]
    return sum(
        1 << operation
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if _check(authorizer, context, Action(operation, resource_type, name, 1, False, False))
    )


def cluster_operations(context: RequestContext) -> int:
    """The operations on the cluster; none without the permission to describe it."""
    if not is_authorized_on_cluster(context, AclOperation.DESCRIBE):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


def _check(authorizer: AclAuthorizer, context: RequestContext, action: Action) -> bool:
    client = Client(context.peer.principal, context.peer.host)
    decision = authorizer.authorize(client, action.operation, action.resource_type, action.name)
    _log(context, client, action, decision)
    return decision.is_allowed


def _log(context: RequestContext, client: Client, action: Action, decision: Decision) -> None:
    if is_logged(decision):
        api = ApiKey(context.api_key).display_name
        log_decision(client, action, decision, api, context.client_id)
