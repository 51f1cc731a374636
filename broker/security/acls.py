"""ACLs as Kafka defines them: resource patterns, entries, and filters that match them.

Enumerations have the numbers of the protocol and the names of Kafka's enums. Numbers that Kafka
does not know become UNKNOWN, as there.
"""

from enum import IntEnum
from typing import Final, NamedTuple

WILDCARD: Final = "*"
"""Every resource of a type (as a literal name), every user (`User:*`), every host."""
WILDCARD_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class _Code(IntEnum):
    """An enumeration in which unknown numbers become UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> "_Code":
        return cls(0)

    @property
    def pascal_case(self) -> str:
        """As Kafka writes it in znodes and in its audit log: `TransactionalId`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class ResourceType(_Code):
    """What an ACL protects."""

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
        """As kctl writes it: `transactional-id`."""
        return self.name.lower().replace("_", "-")


class PatternType(_Code):
    """How the name of a pattern, or of a filter, is compared."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Code):
    """What a client does with a resource."""

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


class AclPermissionType(_Code):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_OP = AclOperation

SUPPORTED_OPERATIONS: Final = {
    ResourceType.TOPIC: (
        _OP.READ,
        _OP.WRITE,
        _OP.CREATE,
        _OP.DESCRIBE,
        _OP.DELETE,
        _OP.ALTER,
        _OP.DESCRIBE_CONFIGS,
        _OP.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (_OP.READ, _OP.DESCRIBE, _OP.DELETE),
    ResourceType.CLUSTER: (
        _OP.CREATE,
        _OP.CLUSTER_ACTION,
        _OP.DESCRIBE_CONFIGS,
        _OP.ALTER_CONFIGS,
        _OP.IDEMPOTENT_WRITE,
        _OP.ALTER,
        _OP.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (_OP.DESCRIBE, _OP.WRITE),
    ResourceType.DELEGATION_TOKEN: (_OP.DESCRIBE,),
    ResourceType.USER: (_OP.CREATE_TOKENS, _OP.DESCRIBE_TOKENS),
}
"""The operations of each type of resource; its keys are the types that ACLs can be stored for."""

IMPLIED_BY: Final = {
    _OP.DESCRIBE: frozenset({_OP.DESCRIBE, _OP.READ, _OP.WRITE, _OP.DELETE, _OP.ALTER}),
    _OP.DESCRIBE_CONFIGS: frozenset({_OP.DESCRIBE_CONFIGS, _OP.ALTER_CONFIGS}),
}
"""Operations that an ALLOW of any of these allows too; DENY implies nothing."""


class ResourcePattern(NamedTuple):
    """The resources that an ACL applies to: one by its name, all (`*`), or those with a prefix."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={self.resource_type.name}, name={self.name}, "
            f"patternType={self.pattern_type.name})"
        )


class AccessControlEntry(NamedTuple):
    """A principal that is allowed or denied an operation, and the host it applies to."""

    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission_type.name})"
        )


class AclBinding(NamedTuple):
    """An entry with the pattern that it belongs to."""

    pattern: ResourcePattern
    entry: AccessControlEntry


class ResourcePatternFilter(NamedTuple):
    """Matches patterns. A name of None matches every name.

    LITERAL and PREFIXED match only patterns of that type, ANY both, all by the exact name. MATCH
    matches every pattern that applies to a resource with the name.
    """

    resource_type: ResourceType
    name: str | None
    pattern_type: PatternType

    def matches(self, pattern: ResourcePattern) -> bool:
        """Whether the filter matches."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type is PatternType.MATCH:
            return self.name is None or _applies(pattern, self.name)
        if self.pattern_type not in (PatternType.ANY, pattern.pattern_type):
            return False
        return self.name is None or self.name == pattern.name

    def exact_patterns(self) -> list[ResourcePattern]:
        """The patterns that the filter matches; empty if all ACLs must be searched."""
        if self.name is None or self.resource_type is ResourceType.ANY:
            return []
        types = {
            PatternType.ANY: (PatternType.LITERAL, PatternType.PREFIXED),
            PatternType.MATCH: (),
        }.get(self.pattern_type, (self.pattern_type,))
        return [ResourcePattern(self.resource_type, self.name, kind) for kind in types]


def _applies(pattern: ResourcePattern, name: str) -> bool:
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in (name, WILDCARD)


class AccessControlEntryFilter(NamedTuple):
    """Matches entries; None and ANY match everything."""

    principal: str | None
    host: str | None
    operation: AclOperation
    permission_type: AclPermissionType

    def matches(self, entry: AccessControlEntry) -> bool:
        """Whether the filter matches."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (AclPermissionType.ANY, entry.permission_type)
        )


class AclBindingFilter(NamedTuple):
    """Matches ACLs."""

    pattern: ResourcePatternFilter
    entry: AccessControlEntryFilter

    def matches(self, binding: AclBinding) -> bool:
        """Whether the filter matches."""
        return self.pattern.matches(binding.pattern) and self.entry.matches(binding.entry)
