"""Settings of topics and brokers, where they come from, and changes to them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker.protocol.schema import Request, ResponseT
from kctl.outcomes import Outcome, outcome

BROKER_DEFAULTS = ""
"""The name of the entity that stands for every broker."""


class EntityType(StrEnum):
    """What has settings, under the name Kafka's tool gives it."""

    TOPICS = "topics"
    BROKERS = "brokers"
    BROKER_LOGGERS = "broker-loggers"

    @property
    def resource_type(self) -> int:
        """Kafka's number for it."""
        return {"topics": 2, "brokers": 4, "broker-loggers": 8}[self]

    @property
    def singular(self) -> str:
        """`topic`, as the tool puts it in sentences."""
        return self.value[:-1]


class Operation(IntEnum):
    """What IncrementalAlterConfigs does with a value."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
DEFAULT_SOURCE = "DEFAULT_CONFIG"
TYPES = ["-", "boolean", "string", "int", "short", "long", "double", "list", "class", "password"]


@dataclass(frozen=True)
class Entity:
    """A topic, a broker, all brokers, or the loggers of a broker."""

    type: EntityType
    name: str

    def __str__(self) -> str:
        if self.type is EntityType.BROKERS and self.name == BROKER_DEFAULTS:
            return "broker defaults"
        return f"{self.type.singular} {self.name}"

    @property
    def own_source(self) -> str | None:
        """The source of what was set for this very entity; None where everything counts."""
        if self.type is EntityType.TOPICS:
            return SOURCES[1]
        if self.type is EntityType.BROKERS:
            return SOURCES[3] if self.name == BROKER_DEFAULTS else SOURCES[2]
        return None


@dataclass(frozen=True)
class Synonym:
    """One of the places a value can come from, in the order in which they count."""

    name: str
    value: str | None
    source: str


@dataclass(frozen=True)
class Config:
    """One setting; `value` is None where it is secret or not set."""

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
        """Whether nobody has set it anywhere."""
        return self.source == DEFAULT_SOURCE


@dataclass(frozen=True)
class Change:
    """What shall become of one setting of an entity."""

    name: str
    operation: Operation
    value: str | None = None


async def describe_configs(
    client: Client, entities: Sequence[Entity], *, synonyms: bool = True, docs: bool = False
) -> dict[Entity, list[Config]]:
    """All settings of each entity, by name; ApiError for one that cannot be described."""
    answers = await asyncio.gather(
        *(_describe(client, node, group, synonyms, docs) for node, group in by_node(entities))
    )
    return {entity: configs for answer in answers for entity, configs in answer.items()}


async def alter_configs(
    client: Client, changes: Mapping[Entity, Sequence[Change]], *, validate_only: bool = False
) -> list[Outcome]:
    """Make the changes, all those of one entity or none; what became of each entity."""
    outcomes = []
    for node, group in by_node(changes):
        request = IncrementalAlterConfigsRequest(
            resources=[_alteration(entity, changes[entity]) for entity in group],
            validate_only=validate_only,
        )
        answer = await _send(client, node, request)
        outcomes += [
            outcome(
                str(_entity(group, result.resource_type, result.resource_name)),
                result.error_code,
                result.error_message,
            )
            for result in answer.responses
        ]
    return outcomes


def by_node(entities: Iterable[Entity]) -> list[tuple[int | None, list[Entity]]]:
    """Entities by the broker to ask, None for any: a broker tells its own settings only."""
    groups: dict[int | None, list[Entity]] = {}
    for entity in entities:
        is_one_broker = entity.type is not EntityType.TOPICS and entity.name != BROKER_DEFAULTS
        groups.setdefault(int(entity.name) if is_one_broker else None, []).append(entity)
    return list(groups.items())


async def _send(client: Client, node: int | None, request: Request[ResponseT]) -> ResponseT:
    return await (client.send(request) if node is None else client.send_to(node, request))


async def _describe(
    client: Client, node: int | None, entities: Sequence[Entity], synonyms: bool, docs: bool
) -> dict[Entity, list[Config]]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=entity.type.resource_type,
                resource_name=entity.name,
                configuration_keys=None,
            )
            for entity in entities
        ],
        include_synonyms=synonyms,
        include_documentation=docs,
    )
    return _read(await _send(client, node, request), entities)


def _read(
    answer: DescribeConfigsResponse, entities: Sequence[Entity]
) -> dict[Entity, list[Config]]:
    found = {}
    for result in answer.results:
        entity = _entity(entities, result.resource_type, result.resource_name)
        if result.error_code:
            words = f": {result.error_message}" if result.error_message else ""
            raise ApiError(ErrorCode(result.error_code), f"{entity}{words}")
        found[entity] = sorted(map(_config, result.configs), key=lambda config: config.name)
    return found


def _entity(entities: Sequence[Entity], resource_type: int, name: str) -> Entity:
    return next(e for e in entities if e.type.resource_type == resource_type and e.name == name)


def _config(result: DescribeConfigsResourceResult) -> Config:
    source = SOURCES.get(result.config_source, "UNKNOWN")
    if result.config_source < 0 and result.is_default:  # before Kafka 1.1
        source = DEFAULT_SOURCE
    return Config(
        name=result.name,
        value=result.value,
        source=source,
        read_only=result.read_only,
        sensitive=result.is_sensitive,
        type=TYPES[result.config_type] if result.config_type < len(TYPES) else TYPES[0],
        synonyms=tuple(
            Synonym(synonym.name, synonym.value, SOURCES.get(synonym.source, "UNKNOWN"))
            for synonym in result.synonyms
        ),
        documentation=result.documentation,
    )


def _alteration(entity: Entity, changes: Sequence[Change]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=entity.type.resource_type,
        resource_name=entity.name,
        configs=[
            AlterableConfig(name=c.name, config_operation=c.operation, value=c.value)
            for c in changes
        ],
    )
