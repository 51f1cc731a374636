"""`kctl configs describe` and `diff`, and `kctl topics configs`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.configs import client_metrics_names, describe_configs
from kctl.admin.connection import ask
from kctl.admin.groups import list_groups
from kctl.admin.topics import find_topics
from kctl.cli.arguments.entities import KafkaEntity, entities_of, parse_entity
from kctl.cli.errors import ExitStatus
from kctl.cli.missing import no_such, no_such_broker
from kctl.cli.options import KafkaText, Session, session_of
from kctl.commands.configs.options import (
    All,
    BrokerDefaults,
    BrokerLogger,
    BrokerOption,
    ClientMetrics,
    Entities,
    EntityDefault,
    EntityName,
    EntityTypeOption,
    GroupOption,
    OneEntity,
    TopicOption,
)
from kctl.model.configs import BROKER_DEFAULTS, Config, Entity, EntityType
from kctl.views.configs import (
    COLUMNS,
    DIFF_COLUMNS,
    DOCUMENTED_COLUMNS,
    config_row,
    diff_rows,
)
from kctl.views.kafka_text.configs import description_lines


def describe(
    ctx: typer.Context,
    entities: Entities = None,
    show_all: All = False,
    docs: Annotated[
        bool, typer.Option("--docs", help="Include the brokers' documentation of each config.")
    ] = False,
    text_format: KafkaText = None,
    entity_type: EntityTypeOption = None,
    entity_name: EntityName = None,
    entity_default: EntityDefault = False,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaults = False,
    broker_logger: BrokerLogger = None,
    group: GroupOption = None,
    client_metrics: ClientMetrics = None,
) -> None:
    """Describe configs and the sources of their values."""
    kafka = KafkaEntity(
        entity_type,
        entity_name,
        entity_default,
        topic,
        broker,
        broker_defaults,
        broker_logger,
        group,
        client_metrics,
    )
    session = session_of(ctx)
    every = kafka.every_one_of()
    if every is None:
        wanted = entities_of(entities, kafka)
    else:
        wanted = ask(session, lambda client: every_entity(client, every))
    found = ask(session, lambda client: _describe(client, wanted, docs=docs), partial=True)
    wanted = [entity for entity in wanted if entity in found]
    if text_format:
        for entity in wanted:
            own = [
                c for c in found[entity] if show_all or c.source == (entity.own_source or c.source)
            ]
            session.out.lines(description_lines(entity, own, describe_all=show_all))
        return
    _show(session, [(entity, found[entity]) for entity in wanted], show_all=show_all, docs=docs)


async def _describe(
    client: Client, entities: Sequence[Entity], *, docs: bool
) -> dict[Entity, list[Config]]:
    brokers = {int(e.name) for e in entities if e.type.is_of_brokers and e.name}
    if brokers:
        present = {broker.id for broker in (await describe_cluster(client)).brokers}
        if missing := brokers - present:
            raise no_such_broker(missing, present)
    try:
        return await describe_configs(client, entities, docs=docs)
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        known = [topic.name for topic in await find_topics(client)]
        named = [e.name for e in entities if e.type is EntityType.TOPICS and e.name]
        unknown = [name for name in named if name not in known]
        raise (no_such("topic", unknown, known) if unknown else error) from error


async def every_entity(client: Client, kind: EntityType) -> list[Entity]:
    """All entities of a type; for brokers, including the cluster-wide defaults."""
    if kind is EntityType.TOPICS:
        return [Entity(kind, topic.name) for topic in await find_topics(client)]
    if kind is EntityType.CLIENT_METRICS:
        return [Entity(kind, name) for name in await client_metrics_names(client)]
    if kind is EntityType.GROUPS:
        return [Entity(kind, group.group_id) for group in await list_groups(client)]
    brokers = [Entity(kind, str(b.id)) for b in (await describe_cluster(client)).brokers]
    defaults = [Entity(kind, BROKER_DEFAULTS)] if kind is EntityType.BROKERS else []
    return brokers + defaults


def show_topic_configs(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="TOPIC…", help="Topic names.")],
    show_all: All = False,
) -> None:
    """Describe the configs of topics; see also `kctl configs`."""
    session = session_of(ctx)
    wanted = [Entity(EntityType.TOPICS, name) for name in dict.fromkeys(names)]
    found = ask(session, lambda client: describe_configs(client, wanted))
    _show(session, [(entity, found[entity]) for entity in wanted], show_all=show_all, docs=False)


def _show(
    session: Session,
    found: Sequence[tuple[Entity, Sequence[Config]]],
    *,
    show_all: bool,
    docs: bool,
) -> None:
    rows = [
        config_row(entity, config, docs=docs)
        for entity, configs in found
        for config in configs
        if show_all or not config.is_default
    ]
    columns = DOCUMENTED_COLUMNS if docs else COLUMNS
    has_one_entity = len(found) == 1 and session.output.is_for_people
    session.out.rows(rows, columns[1:] if has_one_entity else columns, name="config")


def diff(ctx: typer.Context, left: OneEntity, right: OneEntity) -> ExitStatus:
    """Compare the configs of two entities; status 3 if they differ."""
    session = session_of(ctx)
    pair = [parse_entity(left), parse_entity(right)]
    found = ask(session, lambda client: describe_configs(client, pair))
    rows = diff_rows(found[pair[0]], found[pair[1]])
    session.out.rows(rows, DIFF_COLUMNS, name="config")
    return ExitStatus.FOUND if rows else ExitStatus.OK
