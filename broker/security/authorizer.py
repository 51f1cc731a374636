"""Kafka's AclAuthorizer: which principal may do what with which resource.

    super user                                  → allowed
    no ACL applies to the resource              → allow.everyone.if.no.acl.found
    a DENY matches                              → denied, whatever else matches
    an ALLOW matches, or one that implies it    → allowed
    otherwise                                   → denied

An ACL matches if its principal is the client's or `User:*`, its operation the requested one or ALL,
its host the client's address or `*`. Decisions are kept until an ACL changes, so that a request
costs one look-up, however many ACLs there are.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from broker.security.acl_cache import AclCache
from broker.security.acls import (
    IMPLIED_BY,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from broker.security.principal import KafkaPrincipal

_ALL: Final = AclOperation.ALL
_ALLOW, _DENY = AclPermissionType.ALLOW, AclPermissionType.DENY

_MAX_DECISIONS: Final = 50_000
"""Maximum number of cached decisions: clients choose the names of resources."""


class Decision(NamedTuple):
    """The result of a check, and why."""

    is_allowed: bool
    reason: str
    """`super user`, `acl`, `no acl` (none applies to the resource) or `default`."""
    acl: AccessControlEntry | None = None
    """The ACL that decided, if the reason is `acl`."""


_SUPER_USER: Final = Decision(True, "super user")
_DEFAULT: Final = Decision(False, "default")


class Client(NamedTuple):
    """The principal of a request, and the host that it came from."""

    principal: KafkaPrincipal
    host: str


class AclAuthorizer:
    """Decides by the ACLs in `acls`; the owner of the ACLs calls `update` when they change.

    Field `_decisions`: results since the last change. Invariant: each is what `acls` would give.
    Field `allowed_topics`: by client and operation, the topics that `_decisions` allows. Requests
    that only name such topics need no further check.
    """

    def __init__(self, super_users: Iterable[str] = (), *, allow_everyone: bool = False) -> None:
        self.acls = AclCache()
        self._super_users = frozenset(super_users)
        self._if_no_acl = Decision(allow_everyone, "no acl")
        self._decisions: dict[tuple[Client, AclOperation, ResourceType, str | None], Decision] = {}
        self.allowed_topics: dict[tuple[KafkaPrincipal, str, AclOperation], set[str]] = {}

    def update(self, pattern: ResourcePattern, entries: Sequence[AccessControlEntry]) -> None:
        """Replace the ACLs of a pattern."""
        self.acls.update(pattern, entries)
        self._forget()

    def authorize(
        self, client: Client, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Whether the client may do `operation` with the resource."""
        key = (client, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(client, operation, resource_type, name)
            self._keep(key, decision)
            if decision.is_allowed and resource_type is ResourceType.TOPIC:
                self.allowed_topics.setdefault((*client, operation), set()).add(name)
        return decision

    def authorize_by_resource_type(
        self, client: Client, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Whether the client may do `operation` with any resource of a type (KIP-679)."""
        key = (client, operation, resource_type, None)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide_by_type(client, operation, resource_type)
            self._keep(key, decision)
        return decision

    def _keep(
        self, key: tuple[Client, AclOperation, ResourceType, str | None], decision: Decision
    ) -> None:
        if len(self._decisions) >= _MAX_DECISIONS:
            self._forget()
        self._decisions[key] = decision

    def _forget(self) -> None:
        self._decisions.clear()
        self.allowed_topics.clear()

    def _decide(
        self, client: Client, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> Decision:
        if str(client.principal) in self._super_users:
            return _SUPER_USER
        entries = self.acls.matching(resource_type, name)
        if not entries:
            return self._if_no_acl
        concerned = [entry for entry in entries if _concerns(entry, client)]
        for entry in concerned:
            if entry.permission_type is _DENY and entry.operation in (operation, _ALL):
                return Decision(False, "acl", entry)
        allowing = IMPLIED_BY.get(operation) or (operation,)
        for entry in concerned:
            if entry.permission_type is _ALLOW and (
                entry.operation in allowing or entry.operation is _ALL
            ):
                return Decision(True, "acl", entry)
        return _DEFAULT

    def _decide_by_type(
        self, client: Client, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Implied operations do not count here, as in Kafka."""
        if str(client.principal) in self._super_users:
            return _SUPER_USER
        concerned = [
            (pattern, entry)
            for pattern, entry in self.acls
            if pattern.resource_type is resource_type
            and entry.operation in (operation, _ALL)
            and _concerns(entry, client)
        ]
        denied = {pattern: acl for pattern, acl in concerned if acl.permission_type is _DENY}
        everything = denied.get(ResourcePattern(resource_type, WILDCARD))
        if everything is not None:
            return Decision(False, "acl", everything)
        if self._if_no_acl.is_allowed:
            return self._if_no_acl
        for pattern, entry in concerned:
            if entry.permission_type is _ALLOW and not _is_dominated(pattern, denied):
                return Decision(True, "acl", entry)
        return _DEFAULT


def _concerns(entry: AccessControlEntry, client: Client) -> bool:
    return entry.principal in (str(client.principal), WILDCARD_PRINCIPAL) and entry.host in (
        client.host,
        WILDCARD,
    )


def _is_dominated(pattern: ResourcePattern, denied: Iterable[ResourcePattern]) -> bool:
    """Whether every resource of a pattern is denied by one of these patterns."""
    is_literal = pattern.pattern_type is PatternType.LITERAL
    if is_literal and pattern.name == WILDCARD:
        return False
    return any(
        pattern.name.startswith(deny.name)
        if deny.pattern_type is PatternType.PREFIXED
        else is_literal and deny.name == pattern.name
        for deny in denied
    )
