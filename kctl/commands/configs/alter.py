"""`kctl configs alter`, `set`, `delete`, `append` and `subtract`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.configs import alter_configs, describe_configs
from kctl.admin.connection import ask
from kctl.admin.topics import find_topics
from kctl.cli.arguments.configs import parse_changes, parse_kafka_pairs, parse_pairs
from kctl.cli.arguments.entities import KafkaEntity, entities_of, parse_entity
from kctl.cli.client_properties import read_client_properties
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import KafkaText, Session, session_of
from kctl.commands.configs.options import (
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
    _kafka,
)
from kctl.model.configs import Change, Config, Entity, EntityType, Operation
from kctl.views.config_changes import COLUMNS as CHANGE_COLUMNS
from kctl.views.config_changes import change_rows
from kctl.views.kafka_text.configs import completion_line
from kctl.views.outcomes import outcome_columns, show_outcomes

RESULTS = outcome_columns("entity")
SAMPLED_TOPICS = 20
"""Topics whose configs are read to find the default of a config."""


def alter(
    ctx: typer.Context,
    entities: Entities = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a config; can be repeated."),
    ] = None,
    delete_: Annotated[
        list[str] | None,
        typer.Option(
            "--delete", metavar="KEY", help="Remove a config of the entity; can be repeated."
        ),
    ] = None,
    append_: Annotated[
        list[str] | None,
        typer.Option(
            "--append", metavar="KEY=ITEM", help="Append to a list config; can be repeated."
        ),
    ] = None,
    subtract_: Annotated[
        list[str] | None,
        typer.Option(
            "--subtract", metavar="KEY=ITEM", help="Remove from a list config; can be repeated."
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    add_config: Annotated[str | None, _kafka("--add-config", "Set configs.", "a=1,b=[x,y]")] = None,
    add_config_file: Annotated[
        Path | None, _kafka("--add-config-file", "Set the configs of a properties file.", "FILE")
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        _kafka("--delete-config", "Same as --delete, separated with commas.", "a,b"),
    ] = None,
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
    """Change configs of topics, brokers, groups and client metrics; atomically per entity.

    Only KRaft clusters have configs of groups (since Kafka 4.0) and client metrics (since 3.7).
    A client metrics subscription exists as long as it has a config.
    """
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
    from_file = read_client_properties(add_config_file) if add_config_file else {}
    from_kafka = parse_kafka_pairs(add_config) if add_config else {}
    changes = parse_changes(
        set_pairs=from_file | from_kafka | parse_pairs(set_ or (), "--set"),
        deleted=[*(delete_ or ()), *(k for text in delete_config or () for k in text.split(","))],
        appended=append_ or (),
        subtracted=subtract_ or (),
    )
    wanted = entities_of(entities, kafka)
    _change(session_of(ctx), wanted, changes, yes=yes, dry_run=dry_run, as_kafka=bool(text_format))


def set_values(
    ctx: typer.Context,
    entity: OneEntity,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help="Configs to set.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Set configs."""
    changes = parse_changes(set_pairs=parse_pairs(pairs, "set"))
    _change(session_of(ctx), [parse_entity(entity)], changes, yes=yes, dry_run=dry_run)


def delete_values(
    ctx: typer.Context,
    entity: OneEntity,
    keys: Annotated[list[str], typer.Argument(metavar="KEY…", help="Configs to remove.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove configs of an entity, so that defaults apply again."""
    changes = parse_changes(deleted=keys)
    _change(session_of(ctx), [parse_entity(entity)], changes, yes=yes, dry_run=dry_run)


def append_items(
    ctx: typer.Context,
    entity: OneEntity,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=ITEM…", help="Items to append.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Append items to list configs."""
    changes = parse_changes(appended=pairs)
    _change(session_of(ctx), [parse_entity(entity)], changes, yes=yes, dry_run=dry_run)


def subtract_items(
    ctx: typer.Context,
    entity: OneEntity,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=ITEM…", help="Items to remove.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove items from list configs."""
    changes = parse_changes(subtracted=pairs)
    _change(session_of(ctx), [parse_entity(entity)], changes, yes=yes, dry_run=dry_run)


def _change(
    session: Session,
    entities: Sequence[Entity],
    changes: Sequence[Change],
    *,
    yes: bool,
    dry_run: bool,
    as_kafka: bool = False,
) -> None:
    if not changes:
        raise CliError(
            "nothing to change", "use --set, --delete, --append or --subtract", ExitStatus.USAGE
        )
    before = ask(session, lambda client: describe_configs(client, entities))
    for entity in entities:
        _require_set(entity, before[entity], changes)
    work = dict.fromkeys(entities, changes)
    if dry_run:
        checked = ask(session, lambda client: alter_configs(client, work, validate_only=True))
        for one in checked:
            if one.error:
                raise CliError(f"{one.name}: {one.reason}")
    defaults = ask(session, lambda client: _topic_defaults(client, entities, changes))
    rows = [
        row for entity in entities for row in change_rows(entity, before[entity], changes, defaults)
    ]
    whose = str(entities[0]) if len(entities) == 1 else f"{len(entities)} entities"
    plan = Plan(f"Change configs of {whose}?", rows, CHANGE_COLUMNS, "config", RESULTS)
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return
    outcomes = ask(
        session, lambda client: alter_configs(client, work), check="kctl configs describe"
    )
    if as_kafka and not any(one.error for one in outcomes):
        session.out.lines(map(completion_line, entities))
    else:
        show_outcomes(session.out, outcomes, "entity", "changed")


async def _topic_defaults(
    client: Client, entities: Sequence[Entity], changes: Sequence[Change]
) -> dict[str, str | None]:
    """The values that topics have without the configs to delete, by name, as far as known.

    Brokers report no default beside a set value of, for example, retention.ms; topics that do not
    set it have that default.
    """
    deleted = {change.name for change in changes if change.operation is Operation.DELETE}
    named = {entity.name for entity in entities if entity.type is EntityType.TOPICS}
    if not deleted or not named:
        return {}
    others = [topic.name for topic in await find_topics(client) if topic.name not in named]
    samples = [Entity(EntityType.TOPICS, name) for name in others[:SAMPLED_TOPICS]]
    found = await describe_configs(client, samples) if samples else {}
    return {
        config.name: config.value
        for entity, configs in found.items()
        for config in configs
        if config.name in deleted and config.source != entity.own_source
    }


def _require_set(entity: Entity, configs: Sequence[Config], changes: Sequence[Change]) -> None:
    """CliError if a config to delete is not set: it is probably misspelled."""
    if entity.own_source is None:
        return
    own = {config.name for config in configs if config.source == entity.own_source}
    deleted = [change.name for change in changes if change.operation is Operation.DELETE]
    if unset := [name for name in deleted if name not in own]:
        raise CliError(
            f"{entity} does not set {', '.join(unset)}",
            "kctl configs describe shows what was set",
        )
