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
    "group": EntityType.GROUPS,
    "client-metrics": EntityType.CLIENT_METRICS,
    "client-metric": EntityType.CLIENT_METRICS,
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
    group: str | None = None
    client_metrics: str | None = None

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
            *([Entity(EntityType.GROUPS, self.group)] if self.group else []),
            *(
                [Entity(EntityType.CLIENT_METRICS, self.client_metrics)]
                if self.client_metrics
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
            if not kind.is_of_brokers:
                raise _usage(f"{kind} have no defaults of their own", "use --entity-name")
            return [Entity(kind, BROKER_DEFAULTS)]
        if not self.entity_name:
            raise _usage(
                "--entity-type requires --entity-name or --entity-default", "specify the entity"
            )
        return [_entity(kind, self.entity_name)]


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
    """Parse `topic:NAME`, `broker:ID`, `group:NAME` …, or `brokers` (cluster-wide defaults)."""
    if text == DEFAULTS_WORD:
        return Entity(EntityType.BROKERS, BROKER_DEFAULTS)
    word, colon, name = text.partition(":")
    if not (colon and name) or word not in _KINDS:
        raise _usage(
            f"{text!r} is not an entity",
            "use topic:NAME, broker:ID, broker-logger:ID, group:NAME, client-metrics:NAME, or "
            "brokers for the cluster-wide defaults",
        )
    kind = _KINDS[word]
    return _entity(kind, name)


def entities_of(texts: Sequence[str] | None, kafka: KafkaEntity) -> list[Entity]:
    """All entities from arguments and options; CliError if none are given."""
    found = [*map(parse_entity, texts or ()), *kafka.entities()]
    if not found:
        raise _usage("no entity specified", "e.g. topic:orders or broker:1")
    return list(dict.fromkeys(found))


def _entity(kind: EntityType, name: str) -> Entity:
    return _broker(kind, name) if kind.is_of_brokers else Entity(kind, name)


def _broker(kind: EntityType, name: str) -> Entity:
    if not name.isdecimal():
        raise _usage(f"{name!r} is not a broker id", "kctl brokers list shows the ids")
    return Entity(kind, name)


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
