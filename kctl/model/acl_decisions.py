"""Decisions about requests by ACLs, and findings about ACLs."""

from dataclasses import dataclass
from enum import StrEnum

from broker.security.acls import AclOperation
from kctl.model.acls import Acl, Resource


class Reason(StrEnum):
    """Why a request is allowed or denied."""

    SUPER_USER = "the principal is a super user"
    NO_ACL_ALLOWED = "no ACL applies to the resource, and allow.everyone.if.no.acl.found=true"
    NO_ACL_DENIED = "no ACL applies to the resource"
    DENY = "a DENY takes precedence over every ALLOW"
    ALLOW = "an ALLOW applies, and no DENY"
    IMPLIED = "an ALLOW of an operation that implies it applies, and no DENY"
    NO_ALLOW = "the resource has ACLs, but none of them allows it"


@dataclass(frozen=True)
class Request:
    """What a principal tries to do; host None stands for a host that no ACL names."""

    principal: str
    operation: AclOperation
    resource: Resource
    host: str | None = None

    @property
    def description(self) -> str:
        """For messages."""
        where = f" from {self.host}" if self.host else ""
        return f"{self.principal} {self.operation.name} on {self.resource}{where}"


@dataclass(frozen=True)
class AuthorizerSettings:
    """Settings of the brokers that matter; they are not ACLs."""

    super_users: frozenset[str] = frozenset()
    allow_everyone: bool = False


@dataclass(frozen=True)
class Decision:
    """The outcome for one request."""

    request: Request
    allowed: bool
    reason: Reason
    denying: tuple[Acl, ...] = ()
    """All DENY rules that apply: each alone is enough."""
    allowing: tuple[Acl, ...] = ()
    """All ALLOW rules that apply: each alone is enough unless a DENY applies."""

    @property
    def rule(self) -> Acl | None:
        """The rule that decides: the most specific one of those that apply."""
        decisive = self.allowing if self.allowed else self.denying
        return decisive[0] if decisive else None


class Step(StrEnum):
    """Kinds of changes."""

    ADD = "add"
    REMOVE = "remove"
    SETTING = "change super.users on the brokers"


@dataclass(frozen=True)
class Remedy:
    """One step towards the opposite decision; all of them together reverse it."""

    step: Step
    acl: Acl | None = None


class Problem(StrEnum):
    """Kinds of findings; their names are stable."""

    DENY_DOMINATED = "deny-dominated"
    """An ALLOW without effect: a DENY covers it."""
    SHADOWED = "shadowed"
    """A rule without effect: a more general one allows or denies the same."""
    DUPLICATE = "duplicate"
    """Two rules with the same meaning."""
    WILDCARD = "wildcard"
    """An ALLOW for everyone, or of everything."""
    MISSING_TOPIC = "missing-topic"
    """A rule for topics that do not exist."""
    INVALID_HOST = "invalid-host"
    """A rule for a host that is not an IP address: it never applies."""
    UNUSED_OPERATION = "unused-operation"
    """An operation that brokers never check on this type of resource."""


@dataclass(frozen=True)
class Finding:
    """One problem of one rule."""

    problem: Problem
    acl: Acl
    because: str
    other: Acl | None = None
    """The rule that makes it useless."""
