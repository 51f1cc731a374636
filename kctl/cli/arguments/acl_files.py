"""ACLs in YAML files.

acls:
- principal: User:alice
  permission: allow
  resource: topic:orders
  operations: [read, describe]
- principal: User:etl
  permission: allow
  resource: topic:raw-
  pattern: prefixed        # default: literal
  host: 10.0.0.7           # default: *
  operations: [write]
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from broker.security.acls import WILDCARD, AclPermissionType, PatternType
from kctl.cli.arguments.acls import parse_operation, parse_principal, parse_resource
from kctl.cli.errors import CliError, ExitStatus
from kctl.model.acls import Acl, ResourcePattern

_KEYS: Final = ("principal", "permission", "resource", "pattern", "host", "operations")


def acls_document(acls: Iterable[Acl]) -> dict[str, Any]:
    """The document of a file; rules that differ only in their operation are one entry."""
    ordered = sorted(acls, key=_key)
    return {
        "acls": [
            _entry(key, [acl.operation.name.lower() for acl in same])
            for key, same in groupby(ordered, key=lambda acl: _key(acl)[:-1])
        ]
    }


def _key(acl: Acl) -> tuple[Any, ...]:
    return (acl.pattern, acl.principal, acl.permission, acl.host, acl.operation)


def _entry(key: tuple[Any, ...], operations: list[str]) -> dict[str, Any]:
    pattern, principal, permission, host = key
    is_literal = pattern.pattern_type is PatternType.LITERAL
    return {
        "principal": principal,
        "permission": permission.name.lower(),
        "resource": str(pattern),
        **({} if is_literal else {"pattern": pattern.pattern_type.name.lower()}),
        **({} if host == WILDCARD else {"host": host}),
        "operations": [name.replace("_", "-") for name in operations],
    }


def parse_acls(text: str, source: str) -> list[Acl]:
    """The ACLs of a file, each once; CliError names the entry that is wrong."""
    import yaml

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _wrong(source, " ".join(str(error).split())) from error
    entries = document.get("acls") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise _wrong(source, "expected a mapping with the list `acls`")
    found: dict[Acl, None] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            found |= dict.fromkeys(_parse_entry(entry))
        except CliError as error:
            raise _wrong(source, f"entry {number}: {error.message}") from error
    return list(found)


def _parse_entry(entry: Any) -> list[Acl]:
    if not isinstance(entry, dict):
        raise CliError("expected a mapping")
    if surplus := [key for key in entry if key not in _KEYS]:
        raise CliError(f"unknown key {surplus[0]!r}; the keys are {', '.join(_KEYS)}")
    operations = entry.get("operations")
    if not isinstance(operations, list) or not operations:
        raise CliError("`operations` must be a list")
    resource = parse_resource(_text(entry, "resource"))
    pattern_type = _choice(entry, "pattern", ("literal", "prefixed"), "literal")
    pattern = ResourcePattern(resource.type, resource.name, PatternType[pattern_type.upper()])
    permission = AclPermissionType[_choice(entry, "permission", ("allow", "deny"), None).upper()]
    principal = parse_principal(_text(entry, "principal"))
    host = _text(entry, "host") if "host" in entry else WILDCARD
    return [
        Acl(pattern, principal, host, parse_operation(str(one)), permission) for one in operations
    ]


def _text(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise CliError(f"`{key}` is missing or not a string")
    return value


def _choice(entry: dict[str, Any], key: str, known: tuple[str, ...], default: str | None) -> str:
    value = str(entry.get(key, default)).lower()
    if value not in known:
        raise CliError(f"`{key}` must be {' or '.join(known)}")
    return value


def _wrong(source: str, reason: str) -> CliError:
    return CliError(f"{source}: {reason}", "kctl acls export prints a valid file", ExitStatus.USAGE)
