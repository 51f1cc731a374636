"""Access control lists: rules, the resources they apply to, and filters that select them."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

WILDCARD: Final = "*"
"""As a literal resource name: all resources of a type. As a host: all hosts."""
ANY_USER: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class _Code(IntEnum):
    """An enum of the protocol; codes of newer Kafka versions are read as UNKNOWN."""

    @classmethod
    def of(cls, code: int) -> Self:
        """The member for a code in a response."""
        return cls(code) if code in cls._value2member_map_ else cls(0)


class ResourceType(_Code):
    """What an ACL can protect."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @property
    def word(self) -> str:
        """As in `transactional-id:till-1`."""
        return self.name.lower().replace("_", "-")


class PatternType(_Code):
    """How a resource name is compared; ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Code):
    """What an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Permission(_Code):
    """Whether an ACL allows or denies; a denial always takes precedence."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_O = AclOperation

SUPPORTED_OPERATIONS: Final = {
    ResourceType.TOPIC: (
        *(_O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE),
        *(_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ),
    ResourceType.GROUP: (_O.READ, _O.DESCRIBE, _O.DELETE),
    ResourceType.CLUSTER: (
        *(_O.CREATE, _O.ALTER, _O.DESCRIBE, _O.CLUSTER_ACTION),
        *(_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _O.IDEMPOTENT_WRITE),
    ),
    ResourceType.TRANSACTIONAL_ID: (_O.DESCRIBE, _O.WRITE),
    ResourceType.DELEGATION_TOKEN: (_O.DESCRIBE,),
    ResourceType.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS),
}
"""The operations that brokers check, by type of resource."""

IMPLIED_BY: Final = {
    _O.DESCRIBE: (_O.READ, _O.WRITE, _O.DELETE, _O.ALTER),
    _O.DESCRIBE_CONFIGS: (_O.ALTER_CONFIGS,),
}
"""Operations that are allowed to those who are allowed another one; denials imply nothing."""


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
    permission: Permission

    def __str__(self) -> str:
        is_prefix = self.pattern.pattern_type is PatternType.PREFIXED
        where = f"prefix {self.pattern}" if is_prefix else str(self.pattern)
        hosts = "" if self.host == WILDCARD else f" from {self.host}"
        return f"{self.permission.name} {self.operation.name} on {where} to {self.principal}{hosts}"

    def concerns(self, principal: str, host: str | None) -> bool:
        """Whether it applies to this principal on this host; None: only rules for every host."""
        return self.principal in (principal, ANY_USER) and self.host in (WILDCARD, host)

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
    permission: Permission = Permission.ANY


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
