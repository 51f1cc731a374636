"""Entities of `kctl configs`: `topic:orders`, `broker:1`, `brokers`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kctl.cli.errors import CliError, ExitStatus
from kctl.model.configs import BROKER_DEFAULTS, Entity, EntityType

DEFAULTS_WORD: Final = "brokers"
_KINDS: Final = {
    "topic": EntityType.TOPICS,
    "broker": EntityType.BROKERS,
    "broker-logger": EntityType.BROKER_LOGGERS,
}


@dataclass(frozen=True)
class KafkaEntity:
    """The options by which kafka-configs specifies entities."""

    entity_type: str | None = None
    entity_name: str | None = None
    entity_default: bool = False
    topic: str | None = None
    broker: str | None = None
    broker_defaults: bool = False
    broker_logger: str | None = None

    def entities(self) -> list[Entity]:
        """The specified entities."""
        short = [
            *([Entity(EntityType.TOPICS, self.topic)] if self.topic else []),
            *([_broker(EntityType.BROKERS, self.broker)] if self.broker else []),
            *([Entity(EntityType.BROKERS, BROKER_DEFAULTS)] if self.broker_defaults else []),
            *(
                [_broker(EntityType.BROKER_LOGGERS, self.broker_logger)]
                if self.broker_logger
                else []
            ),
        ]
        if self.entity_type is None:
            return short
        return [*short, *self._by_type(self.entity_type)]

    def every_one_of(self) -> EntityType | None:
        """The type, if `--entity-type` alone selects all its entities; else None."""
        if self.entity_type is None or self.entity_name or self.entity_default:
            return None
        return _entity_type(self.entity_type)

    def _by_type(self, name: str) -> list[Entity]:
        kind = _entity_type(name)
        if self.entity_default:
            return [Entity(kind, BROKER_DEFAULTS)]
        if not self.entity_name:
            raise _usage(
                "--entity-type requires --entity-name or --entity-default", "specify the entity"
            )
        if kind is EntityType.TOPICS:
            return [Entity(kind, self.entity_name)]
        return [_broker(kind, self.entity_name)]


def _entity_type(name: str) -> EntityType:
    try:
        return EntityType(name)
    except ValueError:
        hint = f"expected one of: {', '.join(EntityType)}"
        if name in ("users", "clients", "ips"):
            hint = (
                "kctl quotas has the quotas of users, clients and ips, kctl users the credentials"
            )
        raise _usage(f"--entity-type {name} is not supported", hint) from None


def parse_entity(text: str) -> Entity:
    """Parse `topic:NAME`, `broker:ID`, `broker-logger:ID`, or `brokers` (cluster-wide defaults)."""
    if text == DEFAULTS_WORD:
        return Entity(EntityType.BROKERS, BROKER_DEFAULTS)
    word, colon, name = text.partition(":")
    if not (colon and name) or word not in _KINDS:
        raise _usage(
            f"{text!r} is not an entity",
            "use topic:NAME, broker:ID, broker-logger:ID, or brokers for the cluster-wide defaults",
        )
    kind = _KINDS[word]
    return Entity(kind, name) if kind is EntityType.TOPICS else _broker(kind, name)


def entities_of(texts: Sequence[str] | None, kafka: KafkaEntity) -> list[Entity]:
    """All entities from arguments and options; CliError if there are none."""
    found = [*map(parse_entity, texts or ()), *kafka.entities()]
    if not found:
        raise _usage("no entity specified", "e.g. topic:orders or broker:1")
    return list(dict.fromkeys(found))


def _broker(kind: EntityType, name: str) -> Entity:
    if not name.isdecimal():
        raise _usage(f"{name!r} is not a broker id", "kctl brokers list shows the ids")
    return Entity(kind, name)


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
