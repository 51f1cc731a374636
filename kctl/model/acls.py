"""Access control lists: rules, the resources they apply to, and filters that select them."""

from dataclasses import dataclass

from broker.security.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)


@dataclass(frozen=True, order=True)
class Resource:
    """A named resource, such as a topic."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.word}:{self.name}"


@dataclass(frozen=True, order=True)
class ResourcePattern:
    """The resources that an ACL applies to."""

    type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{self.type.word}:{self.name}"

    def matches(self, resource: Resource) -> bool:
        """Whether the pattern applies to a resource."""
        if self.type is not resource.type:
            return False
        if self.pattern_type is PatternType.PREFIXED:
            return resource.name.startswith(self.name)
        return self.name in (WILDCARD, resource.name)


@dataclass(frozen=True)
class Acl:
    """One rule, Kafka's AclBinding."""

    pattern: ResourcePattern
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermissionType

    def __str__(self) -> str:
        is_prefix = self.pattern.pattern_type is PatternType.PREFIXED
        where = f"prefix {self.pattern}" if is_prefix else str(self.pattern)
        hosts = "" if self.host == WILDCARD else f" from {self.host}"
        return f"{self.permission.name} {self.operation.name} on {where} to {self.principal}{hosts}"

    def concerns(self, principal: str, host: str | None) -> bool:
        """Whether it applies to this principal on this host; None: only rules for every host."""
        return self.principal in (principal, WILDCARD_PRINCIPAL) and self.host in (WILDCARD, host)

    @property
    def sort_key(self) -> tuple[object, ...]:
        """By resource, then principal, denials first."""
        return (self.pattern, self.principal, self.permission, self.operation, self.host)


@dataclass(frozen=True)
class AclFilter:
    """Selects ACLs, as the brokers do; the default selects all."""

    type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermissionType = AclPermissionType.ANY


def filter_of(acl: Acl) -> AclFilter:
    """The filter that selects exactly this ACL."""
    pattern = acl.pattern
    return AclFilter(
        pattern.type,
        pattern.name,
        pattern.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission,
    )
