"""Rules of the roles that kafka-acls knows: producer and consumer."""

from collections.abc import Iterable, Iterator, Sequence

from broker.security.acls import CLUSTER_NAME, AclOperation, AclPermissionType, ResourceType
from kctl.model.acls import Acl, ResourcePattern

_O = AclOperation

CLUSTER = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)


def rules(
    patterns: Iterable[ResourcePattern],
    principals: Sequence[str],
    hosts: Sequence[str],
    operations: Sequence[AclOperation],
    permission: AclPermissionType,
) -> list[Acl]:
    """Every combination."""
    return [
        Acl(pattern, principal, host, operation, permission)
        for pattern in patterns
        for principal in principals
        for operation in operations
        for host in hosts
    ]


def producer_operations(
    patterns: Iterable[ResourcePattern], *, idempotent: bool
) -> Iterator[tuple[ResourcePattern, tuple[AclOperation, ...]]]:
    """What a producer needs: topics, and transactional ids if it has one."""
    for pattern in patterns:
        if pattern.type is ResourceType.TOPIC:
            yield pattern, (_O.WRITE, _O.DESCRIBE, _O.CREATE)
        elif pattern.type is ResourceType.TRANSACTIONAL_ID:
            yield pattern, (_O.WRITE, _O.DESCRIBE)
    if idempotent:
        yield CLUSTER, (_O.IDEMPOTENT_WRITE,)


def consumer_operations(
    patterns: Iterable[ResourcePattern],
) -> Iterator[tuple[ResourcePattern, tuple[AclOperation, ...]]]:
    """What a consumer needs: topics, and its group."""
    for pattern in patterns:
        if pattern.type is ResourceType.TOPIC:
            yield pattern, (_O.READ, _O.DESCRIBE)
        elif pattern.type is ResourceType.GROUP:
            yield pattern, (_O.READ,)
