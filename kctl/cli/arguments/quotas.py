"""Entities and values of `kctl quotas`, and the options of kafka-configs for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from kctl.cli.arguments.amounts import parse_bytes
from kctl.cli.arguments.configs import parse_kafka_pairs, parse_pairs
from kctl.cli.arguments.topics import KAFKA_PANEL
from kctl.cli.errors import CliError, ExitStatus
from kctl.model.quotas import CLIENT_QUOTAS, IP_QUOTAS, EntityPart, PartType

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user.")]
UserDefaults = Annotated[
    bool, typer.Option("--user-defaults", help="All users without a quota of their own.")
]
Client = Annotated[str | None, typer.Option("--client", metavar="ID", help="A client id.")]
ClientDefaults = Annotated[
    bool, typer.Option("--client-defaults", help="All client ids without a quota of their own.")
]
Ip = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="An IP address.")]
IpDefaults = Annotated[
    bool, typer.Option("--ip-defaults", help="All addresses without a quota of their own.")
]
_KAFKA_TYPES = {"users": PartType.USER, "clients": PartType.CLIENT, "ips": PartType.IP}


def _kafka(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(
        name, help=text, metavar=metavar, show_default=False, rich_help_panel=KAFKA_PANEL
    )


EntityTypes = Annotated[
    list[str] | None, _kafka("--entity-type", "users, clients or ips; can be repeated.", "TYPE")
]
EntityNames = Annotated[
    list[str] | None, _kafka("--entity-name", "Name of the entity of that type.", "NAME")
]
EntityDefault = Annotated[bool, _kafka("--entity-default", "The default entity of that type.")]
AddConfig = Annotated[str | None, _kafka("--add-config", "Same as KEY=VALUE.", "a=1,b=2")]
DeleteConfig = Annotated[str | None, _kafka("--delete-config", "Same as KEY.", "a,b")]


@dataclass(frozen=True)
class EntityOptions:
    """The options that name an entity."""

    user: str | None = None
    user_defaults: bool = False
    client: str | None = None
    client_defaults: bool = False
    ip: str | None = None
    ip_defaults: bool = False
    entity_types: Sequence[str] | None = None
    entity_names: Sequence[str] | None = None
    entity_default: bool = False

    def parts(self) -> list[EntityPart | PartType]:
        """The named parts; a type without a name stands for all entities of that type."""
        found: list[EntityPart | PartType] = []
        for kind, name, default in (
            (PartType.USER, self.user, self.user_defaults),
            (PartType.CLIENT, self.client, self.client_defaults),
            (PartType.IP, self.ip, self.ip_defaults),
        ):
            if name is not None and default:
                raise _usage(f"--{kind.word} and --{kind.word}-defaults cannot be combined", "")
            if name is not None or default:
                found.append(EntityPart(kind, None if default else name or None))
        found += self._by_type()
        kinds = [part if isinstance(part, PartType) else part.type for part in found]
        if len(set(kinds)) < len(kinds) or (PartType.IP in kinds and len(kinds) > 1):
            raise _usage(
                "this is not an entity with quotas",
                "a user, a client id, both together, or an IP address",
            )
        return found

    def _by_type(self) -> list[EntityPart | PartType]:
        names = list(self.entity_names or ())
        found: list[EntityPart | PartType] = []
        for text in self.entity_types or ():
            kind = _KAFKA_TYPES.get(text)
            if kind is None:
                raise _usage(
                    f"--entity-type {text} has no quotas", "expected users, clients or ips"
                )
            if names:
                found.append(EntityPart(kind, names.pop(0)))
            else:
                found.append(EntityPart(kind, None) if self.entity_default else kind)
        if names:
            raise _usage("--entity-name requires --entity-type", "e.g. --entity-type users")
        return found

    def named_by_kafka(self) -> EntityPart:
        """The part of the entity that kafka-configs names when it has changed it.

        That of the first --entity-type; else the client id, which it looks at before the user.
        """
        parts = self.entity()
        clients = [part for part in parts if part.type is PartType.CLIENT]
        return parts[0] if self.entity_types or not clients else clients[0]

    def entity(self) -> list[EntityPart]:
        """The parts of exactly one entity; CliError if they do not name one."""
        parts = [part for part in self.parts() if isinstance(part, EntityPart)]
        if not parts or len(parts) < len(self.parts()):
            raise _usage(
                "no entity specified", "use --user, --client or both, --ip, or their defaults"
            )
        return parts


def parse_quotas(
    pairs: Iterable[str] | None, add_config: str | None, parts: Sequence[EntityPart]
) -> dict[str, float]:
    """Parse `producer_byte_rate=1MB`; CliError for quotas that the entity cannot have."""
    texts = parse_pairs(pairs or (), "set") | (parse_kafka_pairs(add_config) if add_config else {})
    if not texts:
        raise _usage("no quota specified", "e.g. producer_byte_rate=1048576")
    require_known(texts, parts)
    return {key: _value(key, text) for key, text in texts.items()}


def require_known(names: Iterable[str], parts: Sequence[EntityPart]) -> None:
    """CliError for a quota that the entity cannot have."""
    is_ip = any(part.type is PartType.IP for part in parts)
    known = IP_QUOTAS if is_ip else CLIENT_QUOTAS
    for name in names:
        if name not in known:
            raise _usage(
                f"{'an address' if is_ip else 'a client'} has no quota {name}",
                f"expected one of: {', '.join(known)}",
            )


def _value(key: str, text: str) -> float:
    if key.endswith("_byte_rate"):
        return float(parse_bytes(text, key))
    try:
        value = float(text)
    except ValueError:
        raise _usage(f"{key}={text}: expected a number", f"e.g. {key}=10") from None
    if not 0 <= value < float("inf"):
        raise _usage(f"{key}={text}: must not be negative", "e.g. 10")
    return value


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
