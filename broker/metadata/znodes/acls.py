"""/kafka-acl and /kafka-acl-extended: ACLs by resource, and the notifications of their changes.

Literal patterns are below /kafka-acl, as before KIP-290, which added others; these are below
/kafka-acl-extended/<pattern type>. Types, operations and permissions have the names of Kafka's
enums here (`TRANSACTIONAL_ID`); in the nodes most of them are written as `TransactionalId`.
"""

import re
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from broker.metadata.znodes.json_text import decode_json, encode_json, reading

LITERAL = "LITERAL"
RESOURCE_TYPES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
LITERAL_ACLS_PATH = "/kafka-acl"
EXTENDED_ACLS_PATH = "/kafka-acl-extended"

_INNER_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class ResourcePattern(NamedTuple):
    """The resource pattern that an ACL applies to."""

    resource_type: str
    name: str
    pattern_type: str = LITERAL


class AclEntry(NamedTuple):
    """One access control entry: principal, host, operation, permission."""

    principal: str
    permission_type: str
    operation: str
    host: str


def resource_type_path(resource_type: str, pattern_type: str = LITERAL) -> str:
    """The parent of the resources of a type."""
    return f"{_root(pattern_type)}/{_pascal_case(resource_type)}"


def _root(pattern_type: str) -> str:
    if pattern_type == LITERAL:
        return LITERAL_ACLS_PATH
    return f"{EXTENDED_ACLS_PATH}/{pattern_type.lower()}"


class ResourceZnode:
    """/kafka-acl/TYPE/NAME, for example /kafka-acl/Topic/orders: the ACLs of one pattern."""

    @staticmethod
    def path(resource: ResourcePattern) -> str:
        """The path of a pattern's ACLs."""
        parent = resource_type_path(resource.resource_type, resource.pattern_type)
        return f"{parent}/{resource.name}"

    @staticmethod
    def encode(acls: Iterable[AclEntry]) -> bytes:
        """As Kafka writes it, in the given order."""
        items = [
            {
                "principal": acl.principal,
                "permissionType": _pascal_case(acl.permission_type),
                "host": acl.host,
                "operation": _pascal_case(acl.operation),
            }
            for acl in acls
        ]
        return encode_json({"acls": items, "version": 1})

    @staticmethod
    def decode(path: str, data: bytes | None) -> list[AclEntry]:
        """The ACLs; empty for a node without data."""
        if not data:
            return []
        fields = decode_json(path, data)
        with reading(path, data):
            if fields["version"] != 1:
                raise ValueError("unsupported version")
            return [
                AclEntry(
                    item["principal"],
                    _enum_name(item["permissionType"]),
                    _enum_name(item["operation"]),
                    item["host"],
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
        is_literal = resource.pattern_type == LITERAL
        return f"{cls.LITERAL_PARENT if is_literal else cls.EXTENDED_PARENT}/acl_changes_"

    @staticmethod
    def encode(resource: ResourcePattern) -> bytes:
        """As Kafka writes it: plain text for literal patterns, JSON for others."""
        if resource.pattern_type == LITERAL:
            return f"{resource.resource_type}:{resource.name}".encode()
        return encode_json(
            {
                "version": 1,
                "resourceType": resource.resource_type,
                "name": resource.name,
                "patternType": resource.pattern_type,
            }
        )

    @classmethod
    def decode_literal(cls, data: bytes | None) -> ResourcePattern:
        """The resource of a notification below /kafka-acl-changes."""
        with reading(cls.LITERAL_PARENT, data):
            resource_type, name = (data or b"").decode().split(":", 1)
            return ResourcePattern(resource_type.upper(), name)

    @classmethod
    def decode_extended(cls, data: bytes | None) -> ResourcePattern:
        """The resource of a notification below /kafka-acl-extended-changes."""
        fields = decode_json(cls.EXTENDED_PARENT, data)
        with reading(cls.EXTENDED_PARENT, data):
            return ResourcePattern(fields["resourceType"], fields["name"], fields["patternType"])


def _pascal_case(enum_name: str) -> str:
    return "".join(word.capitalize() for word in enum_name.split("_"))


def _enum_name(pascal_case: str) -> str:
    return _INNER_CAPITAL.sub("_", pascal_case).upper()
