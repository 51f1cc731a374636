"""/kafka-acl and /kafka-acl-extended: ACLs by resource, and the notifications of their changes.

Literal patterns are below /kafka-acl, as before KIP-290, which added others; these are below
/kafka-acl-extended/<pattern type>. Types, operations and permissions are written as
`TransactionalId`; names that Kafka does not know are read as UNKNOWN.
"""

from collections.abc import Iterable
from typing import ClassVar, Final, TypeVar

from broker.metadata.znodes.json_text import decode_json, encode_json, reading
from broker.security.acls import (
    SUPPORTED_OPERATIONS,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)

RESOURCE_TYPES: Final = tuple(SUPPORTED_OPERATIONS)
PATTERN_TYPES: Final = (PatternType.LITERAL, PatternType.PREFIXED)
LITERAL_ACLS_PATH = "/kafka-acl"
EXTENDED_ACLS_PATH = "/kafka-acl-extended"

_CodeT = TypeVar("_CodeT", AclOperation, AclPermissionType, ResourceType)


def resource_type_path(
    resource_type: ResourceType, pattern_type: PatternType = PatternType.LITERAL
) -> str:
    """The parent of the resources of a type."""
    return f"{_root(pattern_type)}/{resource_type.pascal_case}"


def _root(pattern_type: PatternType) -> str:
    if pattern_type is PatternType.LITERAL:
        return LITERAL_ACLS_PATH
    return f"{EXTENDED_ACLS_PATH}/{pattern_type.name.lower()}"


class ResourceZnode:
    """/kafka-acl/TYPE/NAME, for example /kafka-acl/Topic/orders: the ACLs of one pattern."""

    @staticmethod
    def path(resource: ResourcePattern) -> str:
        """The path of a pattern's ACLs."""
        parent = resource_type_path(resource.resource_type, resource.pattern_type)
        return f"{parent}/{resource.name}"

    @staticmethod
    def encode(entries: Iterable[AccessControlEntry]) -> bytes:
        """As Kafka writes it, in the given order."""
        items = [
            {
                "principal": entry.principal,
                "permissionType": entry.permission_type.pascal_case,
                "host": entry.host,
                "operation": entry.operation.pascal_case,
            }
            for entry in entries
        ]
        return encode_json({"acls": items, "version": 1})

    @staticmethod
    def decode(path: str, data: bytes | None) -> list[AccessControlEntry]:
        """The ACLs; empty for a node without data."""
        if not data:
            return []
        fields = decode_json(path, data)
        with reading(path, data):
            if fields["version"] != 1:
                raise ValueError("unsupported version")
            return [
                AccessControlEntry(
                    item["principal"],
                    item["host"],
                    _code(AclOperation, item["operation"]),
                    _code(AclPermissionType, item["permissionType"]),
                )
                for item in fields["acls"]
            ]


class AclChangeZnode:
    """acl_changes_N: notifies brokers that the ACLs of a resource have changed."""

    LITERAL_PARENT: ClassVar[str] = "/kafka-acl-changes"
    EXTENDED_PARENT: ClassVar[str] = "/kafka-acl-extended-changes"

    @classmethod
    def prefix(cls, resource: ResourcePattern) -> str:
        """The path with which the sequence node is created."""
        is_literal = resource.pattern_type is PatternType.LITERAL
        return f"{cls.LITERAL_PARENT if is_literal else cls.EXTENDED_PARENT}/acl_changes_"

    @staticmethod
    def encode(resource: ResourcePattern) -> bytes:
        """As Kafka writes it: plain text for literal patterns, JSON for others."""
        if resource.pattern_type is PatternType.LITERAL:
            return f"{resource.resource_type.name}:{resource.name}".encode()
        return encode_json(
            {
                "version": 1,
                "resourceType": resource.resource_type.name,
                "name": resource.name,
                "patternType": resource.pattern_type.name,
            }
        )

    @classmethod
    def decode_literal(cls, data: bytes | None) -> ResourcePattern:
        """The resource of a notification below /kafka-acl-changes."""
        with reading(cls.LITERAL_PARENT, data):
            resource_type, name = (data or b"").decode().split(":", 1)
            return ResourcePattern(ResourceType[resource_type.upper()], name)

    @classmethod
    def decode_extended(cls, data: bytes | None) -> ResourcePattern:
        """The resource of a notification below /kafka-acl-extended-changes."""
        fields = decode_json(cls.EXTENDED_PARENT, data)
        with reading(cls.EXTENDED_PARENT, data):
            return ResourcePattern(
                ResourceType[fields["resourceType"].upper()],
                fields["name"],
                PatternType[fields["patternType"].upper()],
            )


def _code(codes: type[_CodeT], pascal_case: str) -> _CodeT:
    """The code with this name; Kafka compares it without underscores and without case."""
    wanted = pascal_case.upper()
    for code in codes:
        if code.name.replace("_", "") == wanted:
            return code
    return codes(0)
