"""Configs of topics and brokers, their sources, and changes of them."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

BROKER_DEFAULTS = ""
"""The entity name of the cluster-wide broker defaults."""


class EntityType(StrEnum):
    """Types of entities, by their names in kafka-configs."""

    TOPICS = "topics"
    BROKERS = "brokers"
    BROKER_LOGGERS = "broker-loggers"
    CLIENT_METRICS = "client-metrics"
    GROUPS = "groups"

    @property
    def resource_type(self) -> int:
        """Kafka's number of the type."""
        return _RESOURCE_TYPES[self]

    @property
    def singular(self) -> str:
        """`topic`, as in the sentences of kafka-configs."""
        return self.value[:-1]

    @property
    def is_of_brokers(self) -> bool:
        """Whether the names of its entities are broker ids."""
        return self in (EntityType.BROKERS, EntityType.BROKER_LOGGERS)


_RESOURCE_TYPES = {
    EntityType.TOPICS: 2,
    EntityType.BROKERS: 4,
    EntityType.BROKER_LOGGERS: 8,
    EntityType.CLIENT_METRICS: 16,
    EntityType.GROUPS: 32,
}


class Operation(IntEnum):
    """Operations of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


TOPIC_SOURCE = "DYNAMIC_TOPIC_CONFIG"
BROKER_SOURCE = "DYNAMIC_BROKER_CONFIG"
CLUSTER_SOURCE = "DYNAMIC_DEFAULT_BROKER_CONFIG"
DEFAULT_SOURCE = "DEFAULT_CONFIG"
CLIENT_METRICS_SOURCE = "DYNAMIC_CLIENT_METRICS_CONFIG"
GROUP_SOURCE = "DYNAMIC_GROUP_CONFIG"

SOURCES = {
    1: TOPIC_SOURCE,
    2: BROKER_SOURCE,
    3: CLUSTER_SOURCE,
    4: "STATIC_BROKER_CONFIG",
    5: DEFAULT_SOURCE,
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: CLIENT_METRICS_SOURCE,
    8: GROUP_SOURCE,
}
"""The sources of values, by their numbers in DescribeConfigs."""


@dataclass(frozen=True)
class Entity:
    """A topic, a broker, the defaults of all brokers, the loggers of a broker, a group, or a
    subscription of client metrics."""

    type: EntityType
    name: str

    def __str__(self) -> str:
        if self.type is EntityType.BROKERS and self.name == BROKER_DEFAULTS:
            return "broker defaults"
        return f"{self.type.singular} {self.name}"

    @property
    def own_source(self) -> str | None:
        """The source of configs set on this entity itself; None for loggers, where all count."""
        if self.type is EntityType.TOPICS:
            return TOPIC_SOURCE
        if self.type is EntityType.BROKERS:
            return CLUSTER_SOURCE if self.name == BROKER_DEFAULTS else BROKER_SOURCE
        own = {
            EntityType.CLIENT_METRICS: CLIENT_METRICS_SOURCE,
            EntityType.GROUPS: GROUP_SOURCE,
        }
        return own.get(self.type)


@dataclass(frozen=True)
class Synonym:
    """One source of a value; synonyms are listed by precedence."""

    name: str
    value: str | None
    source: str


@dataclass(frozen=True)
class Config:
    """One config; `value` is None if it is sensitive or not set."""

    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool
    type: str
    synonyms: tuple[Synonym, ...]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Whether it has its default value."""
        return self.source == DEFAULT_SOURCE


@dataclass(frozen=True)
class Change:
    """A change of one config of an entity."""

    name: str
    operation: Operation
    value: str | None = None

    def value_after(self, config: Config | None) -> str | None:
        """The effective value after the change; `config` is the current one, if known.

        After a deletion the next synonym applies.
        """
        if self.operation is Operation.SET:
            return self.value
        if self.operation is Operation.DELETE:
            rest = config.synonyms[1:] if config else ()
            return rest[0].value if rest else None
        now = config.value if config else None
        present = [item for item in (now or "").split(",") if item]
        named = [item.strip() for item in (self.value or "").split(",")]
        if self.operation is Operation.APPEND:
            return ",".join([*present, *(item for item in named if item not in present)])
        return ",".join(item for item in present if item not in named)
