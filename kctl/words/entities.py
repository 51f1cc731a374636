"""Which topics and brokers `kctl configs` is about: `topic:orders`, `broker:1`, `brokers`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kctl.admin.configs import BROKER_DEFAULTS, Entity, EntityType
from kctl.errors import CliError, ExitStatus

DEFAULTS_WORD: Final = "brokers"
_KINDS: Final = {
    "topic": EntityType.TOPICS,
    "broker": EntityType.BROKERS,
    "broker-logger": EntityType.BROKER_LOGGERS,
}


@dataclass(frozen=True)
class KafkaEntity:
    """The options with which kafka-configs names an entity."""

    entity_type: str | None = None
    entity_name: str | None = None
    entity_default: bool = False
    topic: str | None = None
    broker: str | None = None
    broker_defaults: bool = False
    broker_logger: str | None = None

    def entities(self) -> list[Entity]:
        """What they name."""
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
        """The type whose every entity is meant: `--entity-type` alone; None if one is named."""
        if self.entity_type is None or self.entity_name or self.entity_default:
            return None
        return _entity_type(self.entity_type)

    def _by_type(self, name: str) -> list[Entity]:
        kind = _entity_type(name)
        if self.entity_default:
            return [Entity(kind, BROKER_DEFAULTS)]
        if not self.entity_name:
            raise _usage("--entity-type needs --entity-name or --entity-default", "say which one")
        if kind is EntityType.TOPICS:
            return [Entity(kind, self.entity_name)]
        return [_broker(kind, self.entity_name)]


def _entity_type(name: str) -> EntityType:
    try:
        return EntityType(name)
    except ValueError:
        known = ", ".join(EntityType)
        raise _usage(f"--entity-type {name} is none that kctl has", f"there are {known}") from None


def parse_entity(text: str) -> Entity:
    """`topic:NAME`, `broker:ID`, `broker-logger:ID`, or `brokers` for the defaults of all."""
    if text == DEFAULTS_WORD:
        return Entity(EntityType.BROKERS, BROKER_DEFAULTS)
    word, colon, name = text.partition(":")
    if not (colon and name) or word not in _KINDS:
        raise _usage(
            f"{text!r} names nothing that has settings",
            "write topic:NAME, broker:ID, broker-logger:ID, or brokers for all of them",
        )
    kind = _KINDS[word]
    return Entity(kind, name) if kind is EntityType.TOPICS else _broker(kind, name)


def entities_of(texts: Sequence[str] | None, kafka: KafkaEntity) -> list[Entity]:
    """All entities that were named in either way; CliError if there are none."""
    found = [*map(parse_entity, texts or ()), *kafka.entities()]
    if not found:
        raise _usage("nothing named", "say whose settings, e.g. topic:orders or broker:1")
    return list(dict.fromkeys(found))


def _broker(kind: EntityType, name: str) -> Entity:
    if not name.isdecimal():
        raise _usage(f"{name!r} is not the id of a broker", "kctl brokers list shows the ids")
    return Entity(kind, name)


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
