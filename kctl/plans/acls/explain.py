"""Which ACL decides a request, and what would change the decision.

The rules of AclAuthorizer, in order:

    1. a super user is allowed everything
    2. no ACL applies to the resource: allowed if allow.everyone.if.no.acl.found, else denied
    3. a DENY for the operation, or for ALL: denied
    4. an ALLOW for the operation, for ALL, or for an operation that implies it: allowed
    5. otherwise denied
"""

from collections.abc import Iterable, Sequence

from broker.security.acls import IMPLIED_BY, WILDCARD, AclOperation, AclPermissionType, PatternType
from kctl.model.acl_decisions import (
    AuthorizerSettings,
    Decision,
    Reason,
    Remedy,
    Request,
    Step,
)
from kctl.model.acls import Acl, ResourcePattern


def decide(acls: Iterable[Acl], request: Request, settings: AuthorizerSettings) -> Decision:
    """Decide as AclAuthorizer does, and name all rules that take part."""
    if request.principal in settings.super_users:
        return Decision(request, True, Reason.SUPER_USER)
    present = [acl for acl in acls if acl.pattern.matches(request.resource)]
    if not present:
        reason = Reason.NO_ACL_ALLOWED if settings.allow_everyone else Reason.NO_ACL_DENIED
        return Decision(request, settings.allow_everyone, reason)
    applying = [acl for acl in present if acl.concerns(request.principal, request.host)]
    denying = _of(applying, AclPermissionType.DENY, (request.operation,))
    implying = (request.operation, *IMPLIED_BY.get(request.operation, ()))
    allowing = _of(applying, AclPermissionType.ALLOW, implying)
    if denying:
        return Decision(request, False, Reason.DENY, denying, allowing)
    if not allowing:
        return Decision(request, False, Reason.NO_ALLOW)
    is_direct = allowing[0].operation in (request.operation, AclOperation.ALL)
    return Decision(request, True, Reason.ALLOW if is_direct else Reason.IMPLIED, (), allowing)


def _of(
    acls: Iterable[Acl], permission: AclPermissionType, operations: Sequence[AclOperation]
) -> tuple[Acl, ...]:
    """The ACLs for one of these operations or ALL; the most specific first."""
    found = [
        acl
        for acl in acls
        if acl.permission is permission and acl.operation in (*operations, AclOperation.ALL)
    ]
    return tuple(sorted(found, key=lambda acl: _generality(acl, operations[0])))


def _generality(acl: Acl, operation: AclOperation) -> tuple[int, ...]:
    """Sort key: rules made for this operation, resource and principal before general ones."""
    pattern = acl.pattern
    is_literal = pattern.pattern_type is PatternType.LITERAL
    return (
        (operation, AclOperation.ALL).index(acl.operation)
        if acl.operation in (operation, AclOperation.ALL)
        else 2,
        (2 if pattern.name == WILDCARD else 0) if is_literal else 1,
        -len(pattern.name),
        int(acl.principal.endswith(":*")),
        int(acl.host == WILDCARD),
        int(acl.operation),
    )


def remedies(decision: Decision) -> list[Remedy]:
    """The steps that reverse a decision, fewest changes first; all of them are needed."""
    request = decision.request
    if decision.reason is Reason.SUPER_USER:
        return [Remedy(Step.SETTING)]
    if not decision.allowed:
        removals = [Remedy(Step.REMOVE, acl) for acl in decision.denying]
        grant = (
            [] if decision.allowing else [Remedy(Step.ADD, _rule(request, AclPermissionType.ALLOW))]
        )
        return [*removals, *grant]
    named = all(
        acl.principal == request.principal and acl.pattern.name == request.resource.name
        for acl in decision.allowing
    )
    if decision.allowing and named:
        return [Remedy(Step.REMOVE, acl) for acl in decision.allowing]
    # A general rule has other users: denying this one request does less than removing it.
    return [Remedy(Step.ADD, _rule(request, AclPermissionType.DENY))]


def _rule(request: Request, permission: AclPermissionType) -> Acl:
    pattern = ResourcePattern(request.resource.type, request.resource.name)
    host = request.host or WILDCARD
    return Acl(pattern, request.principal, host, request.operation, permission)
