"""Configs of topics and brokers: descriptions and changes."""

from collections.abc import Iterable, Mapping, Sequence

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
from broker.protocol.messages.list_client_metrics_resources import (
    ListClientMetricsResourcesRequest,
)
from broker.protocol.schema import Request, ResponseT
from kctl.admin.broker_queries import BrokerUnavailable, change, each_broker
from kctl.admin.quorum import not_kraft
from kctl.model.configs import (
    BROKER_DEFAULTS,
    DEFAULT_SOURCE,
    SOURCES,
    Change,
    Config,
    Entity,
    Synonym,
)
from kctl.model.outcomes import Outcome, outcome

TYPES = ["-", "boolean", "string", "int", "short", "long", "double", "list", "class", "password"]


async def describe_configs(
    client: Client, entities: Sequence[Entity], *, synonyms: bool = True, docs: bool = False
) -> dict[Entity, list[Config]]:
    """All configs of each entity, sorted by name; ApiError if an entity does not exist.

    In a partial query, the entities of brokers that did not answer are missing.
    """
    groups = by_node(entities)
    anywhere = [entity for node, group in groups if node is None for entity in group]
    answers = await each_broker(
        client,
        {node: group for node, group in groups if node is not None},
        lambda node, group: _describe(client, node, group, synonyms, docs),
    )
    found = await _describe(client, None, anywhere, synonyms, docs) if anywhere else {}
    return found | {e: configs for answer in answers.values() for e, configs in answer.items()}


async def alter_configs(
    client: Client, changes: Mapping[Entity, Sequence[Change]], *, validate_only: bool = False
) -> list[Outcome]:
    """Make the changes, atomically per entity; the outcome of each entity."""
    outcomes = []
    for node, group in by_node(changes):
        request = IncrementalAlterConfigsRequest(
            resources=[_alteration(entity, changes[entity]) for entity in group],
            validate_only=validate_only,
        )
        try:
            answer = await _change(client, node, request)
        except BrokerUnavailable as error:
            timed_out = ErrorCode.REQUEST_TIMED_OUT
            outcomes += [Outcome(str(entity), timed_out, str(error)) for entity in group]
            continue
        outcomes += [
            outcome(
                str(_entity(group, result.resource_type, result.resource_name)),
                result.error_code,
                result.error_message,
            )
            for result in answer.responses
        ]
    return outcomes


async def client_metrics_names(client: Client) -> list[str]:
    """The subscriptions of client metrics, sorted; CliError for clusters that use ZooKeeper."""
    try:
        answer = await client.send(ListClientMetricsResourcesRequest())
    except ApiError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise not_kraft("it has no subscriptions of client metrics") from error
        raise
    if answer.error_code:
        raise ApiError(ErrorCode(answer.error_code), "the subscriptions of client metrics")
    return sorted(one.name for one in answer.client_metrics_resources)


def by_node(entities: Iterable[Entity]) -> list[tuple[int | None, list[Entity]]]:
    """Entities by the broker that must be queried; None for any broker."""
    groups: dict[int | None, list[Entity]] = {}
    for entity in entities:
        is_one_broker = entity.type.is_of_brokers and entity.name != BROKER_DEFAULTS
        groups.setdefault(int(entity.name) if is_one_broker else None, []).append(entity)
    return list(groups.items())


async def _change(client: Client, node: int | None, request: Request[ResponseT]) -> ResponseT:
    if node is None:
        return await client.send(request)
    if node not in client.cluster.nodes:
        await client.refresh_metadata()
    return await change(client, node, lambda: client.send_to(node, request))


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
