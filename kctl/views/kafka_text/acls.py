"""The output of kafka-acls.

Kafka keeps ACLs in hash tables whose order differs from run to run; ours is the brokers' order for
listed ACLs, and the order of the options for new ones.
"""

from collections.abc import Iterator, Sequence

from kctl.model.acls import Acl, ResourcePattern


def addition_text(acls: Sequence[Acl]) -> str:
    """What `--add` prints: the ACLs by resource."""
    return "".join(_resources("Adding ACLs", acls))


def listing_text(acls: Sequence[Acl], principals: Sequence[str] = ()) -> str:
    """What `--list` prints; with `--principal`, once for each principal."""
    if not principals:
        return "".join(_resources("Current ACLs", acls))
    parts = []
    for principal in principals:
        own = [acl for acl in acls if acl.principal == principal]
        parts += [f"ACLs for principal `{principal}`\n", *_resources("Current ACLs", own)]
    return "".join(parts)


def _resources(heading: str, acls: Sequence[Acl]) -> Iterator[str]:
    by_pattern: dict[ResourcePattern, list[Acl]] = {}
    for acl in acls:
        by_pattern.setdefault(acl.pattern, []).append(acl)
    for pattern, own in by_pattern.items():
        lines = "\n".join(f"\t{_entry(acl)}" for acl in own)
        yield f"{heading} for resource `{_pattern(pattern)}`: \n {lines} \n\n"


def _pattern(pattern: ResourcePattern) -> str:
    return (
        f"ResourcePattern(resourceType={pattern.type.name}, name={pattern.name}, "
        f"patternType={pattern.pattern_type.name})"
    )


def _entry(acl: Acl) -> str:
    return (
        f"(principal={acl.principal}, host={acl.host}, operation={acl.operation.name}, "
        f"permissionType={acl.permission.name})"
    )
