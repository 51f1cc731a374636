"""Conversations about ACLs with a broker that has an authorizer."""

import itertools
from collections.abc import Iterator
from typing import Any

from broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from broker.protocol.messages.describe_acls import DescribeAclsRequest
from tests.conformance.exchange import Exchange, Talk

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, GROUP, CLUSTER, TXN, TOKEN, USER = 2, 3, 4, 5, 6, 7
ALL, READ, WRITE = 2, 3, 4
DENY, ALLOW = 2, 3
_HOST = "10.9.8.7"
"""Only for these conversations; what others have stored is not described."""


def acl(version: int, **fields: Any) -> AclCreation:
    own: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": "m-orders",
        "principal": "User:alice",
        "host": _HOST,
        "operation": READ,
        "permission_type": ALLOW,
    }
    own |= fields
    if version == 0:
        own.pop("resource_pattern_type", None)
    return AclCreation(**own)


def filter_fields(version: int, **fields: Any) -> dict[str, Any]:
    own: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": _HOST,
        "operation": ANY,
        "permission_type": ANY,
    }
    own |= fields
    if version == 0:
        own.pop("pattern_type_filter")
    return own


def stored(version: int) -> list[AclCreation]:
    """ACLs of every kind that the version can carry."""
    types = [TOPIC, GROUP, TXN, TOKEN] + ([USER] if version >= 3 else [])
    patterns = [LITERAL] if version == 0 else [LITERAL, PREFIXED]
    return [
        acl(version, resource_type=kind, resource_pattern_type=pattern, operation=operation)
        for kind, pattern, operation in itertools.product(types, patterns, (READ, ALL))
    ] + [
        acl(version, resource_name="*", permission_type=DENY),
        acl(version, resource_type=CLUSTER, resource_name="kafka-cluster", operation=12),
        acl(version, resource_name="m-o", resource_pattern_type=PREFIXED, principal="User:*"),
        acl(version, resource_name="m-ünïcode \U0001f600", principal="User:CN=a,O=b:c"),
    ]


def delete_all(version: int) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=[DeleteAclsFilter(**filter_fields(version))])


def create_acls_with_authorizer(prefix: str, version: int) -> Talk:
    yield CreateAclsRequest(creations=stored(version))
    yield CreateAclsRequest(creations=stored(version)[:2])  # again: no change, no error
    yield DescribeAclsRequest(**filter_fields(3))
    for creation in invalid(version):
        yield CreateAclsRequest(creations=[acl(version, resource_name="m-good"), creation])
    yield CreateAclsRequest(creations=[])
    yield delete_all(3)


def invalid(version: int) -> Iterator[AclCreation]:
    yield acl(version, resource_name="")
    yield acl(version, resource_name="a/b")
    yield acl(version, resource_type=CLUSTER, resource_name="m-cluster")
    yield acl(version, principal="alice")
    yield acl(version, principal="")
    yield acl(version, resource_type=99)
    yield acl(version, operation=99)
    yield acl(version, permission_type=99)
    yield acl(version, resource_type=ANY)
    yield acl(version, operation=ANY)
    yield acl(version, permission_type=ANY)
    if version:
        yield acl(version, resource_pattern_type=ANY)
        yield acl(version, resource_pattern_type=MATCH)
        yield acl(version, resource_pattern_type=99)


def filters(version: int) -> Iterator[dict[str, Any]]:
    yield filter_fields(version)
    yield filter_fields(version, resource_type_filter=TOPIC)
    yield filter_fields(version, resource_name_filter="m-orders")
    yield filter_fields(version, resource_name_filter="*")
    yield filter_fields(version, principal_filter="User:alice", operation=ALL)
    yield filter_fields(version, permission_type=DENY)
    yield filter_fields(version, host_filter="1.1.1.1")
    yield filter_fields(version, resource_type_filter=99)
    yield filter_fields(version, operation=99)
    if version:
        for pattern in (LITERAL, PREFIXED, MATCH, 99):
            yield filter_fields(version, pattern_type_filter=pattern)
            yield filter_fields(
                version,
                pattern_type_filter=pattern,
                resource_type_filter=TOPIC,
                resource_name_filter="m-orders-2024",
            )


def list_acls_with_authorizer(prefix: str, version: int) -> Talk:
    yield CreateAclsRequest(creations=stored(3))
    for fields in filters(version):
        yield DescribeAclsRequest(**fields)
    yield delete_all(3)


def delete_acls_with_authorizer(prefix: str, version: int) -> Talk:
    few = [*stored(3)[:4], *stored(3)[-4:]]
    for fields in filters(version):
        yield CreateAclsRequest(creations=few)
        yield DeleteAclsRequest(filters=[DeleteAclsFilter(**fields)])
        yield DescribeAclsRequest(**filter_fields(3))
    yield DeleteAclsRequest(filters=[])
    yield CreateAclsRequest(creations=few)
    yield DeleteAclsRequest(filters=[DeleteAclsFilter(**fields) for fields in filters(version)])
    yield delete_all(version)


EXCHANGES = (
    Exchange(CreateAclsRequest, create_acls_with_authorizer),
    Exchange(DescribeAclsRequest, list_acls_with_authorizer),
    Exchange(DeleteAclsRequest, delete_acls_with_authorizer),
)
CASES = [
    (exchange, version)
    for exchange in EXCHANGES
    for _, version in exchange.cases()
    if version != 2  # differs from version 1 only in the encoding
]
IDS = [f"{exchange.name}-v{version}" for exchange, version in CASES]
