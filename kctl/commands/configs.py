"""`kctl configs`: settings of topics and brokers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.configs import (
    BROKER_DEFAULTS,
    Change,
    Config,
    Entity,
    EntityType,
    Operation,
    alter_configs,
    describe_configs,
)
from kctl.admin.connection import ask
from kctl.admin.topics import find_topics
from kctl.client_properties import read_client_properties
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, noun
from kctl.kafka_text.configs import completion_line, description_lines
from kctl.options import KafkaText, Session, session_of
from kctl.outcomes import show_outcomes
from kctl.output import OutputFormat
from kctl.plans.config_changes import COLUMNS as CHANGE_COLUMNS
from kctl.plans.config_changes import SECRET, change_rows, parse_changes
from kctl.tables import Column
from kctl.words.configs import parse_kafka_pairs, parse_pairs
from kctl.words.entities import KafkaEntity, entities_of, parse_entity
from kctl.words.topics import KAFKA_PANEL

app = noun("Settings of topics and brokers.")

Entities = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ENTITY…",
        help="topic:NAME, broker:ID, broker-logger:ID, or brokers: the defaults of all brokers.",
        show_default=False,
    ),
]
OneEntity = Annotated[
    str, typer.Argument(metavar="ENTITY", help="topic:NAME, broker:ID, broker-logger:ID, brokers.")
]
All = Annotated[bool, typer.Option("--all", help="Also what nobody has set.")]


def _kafka(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(
        name, help=text, metavar=metavar, show_default=False, rich_help_panel=KAFKA_PANEL
    )


EntityTypeOption = Annotated[
    str | None, _kafka("--entity-type", "topics, brokers or broker-loggers.", "TYPE")
]
EntityName = Annotated[
    str | None, _kafka("--entity-name", "Which one; describe without it: all.", "NAME")
]
EntityDefault = Annotated[bool, _kafka("--entity-default", "The defaults of all brokers.")]
TopicOption = Annotated[str | None, _kafka("--topic", "The same as topic:NAME.", "NAME")]
BrokerOption = Annotated[str | None, _kafka("--broker", "The same as broker:ID.", "ID")]
BrokerDefaults = Annotated[bool, _kafka("--broker-defaults", "The same as brokers.")]
BrokerLogger = Annotated[
    str | None, _kafka("--broker-logger", "The same as broker-logger:ID.", "ID")
]

COLUMNS = [
    Column("entity"),
    Column("config"),
    Column("value"),
    Column("source"),
    Column("type", wide=True),
    Column("read_only", wide=True),
    Column("sensitive", wide=True),
    Column("synonyms", wide=True),
]
DIFF_COLUMNS = [Column("config"), Column("left"), Column("right"), Column("sources", wide=True)]


@command(
    app,
    "describe",
    examples=[
        "kctl configs describe topic:orders",
        "kctl configs describe broker:1 --all -o wide",
        "kctl configs describe brokers",
        "kctl configs describe --entity-type topics --entity-name orders --format kafka",
    ],
)
def describe(
    ctx: typer.Context,
    entities: Entities = None,
    show_all: All = False,
    docs: Annotated[
        bool, typer.Option("--docs", help="With what the brokers say each is for.")
    ] = False,
    text_format: KafkaText = None,
    entity_type: EntityTypeOption = None,
    entity_name: EntityName = None,
    entity_default: EntityDefault = False,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaults = False,
    broker_logger: BrokerLogger = None,
) -> None:
    """Show settings, and where each value comes from."""
    kafka = KafkaEntity(
        entity_type, entity_name, entity_default, topic, broker, broker_defaults, broker_logger
    )
    session = session_of(ctx)
    every = kafka.every_one_of()
    if every is None:
        wanted = entities_of(entities, kafka)
    else:
        wanted = ask(session, lambda client: every_entity(client, every))
    found = ask(session, lambda client: describe_configs(client, wanted, docs=docs))
    if text_format:
        for entity in wanted:
            own = [
                c for c in found[entity] if show_all or c.source == (entity.own_source or c.source)
            ]
            session.out.lines(description_lines(entity, own, describe_all=show_all))
        return
    _show(session, [(entity, found[entity]) for entity in wanted], show_all=show_all, docs=docs)


async def every_entity(client: Client, kind: EntityType) -> list[Entity]:
    """All entities of a type there are; of brokers, also what holds for all of them."""
    if kind is EntityType.TOPICS:
        return [Entity(kind, topic.name) for topic in await find_topics(client)]
    brokers = [Entity(kind, str(b.id)) for b in (await describe_cluster(client)).brokers]
    defaults = [Entity(kind, BROKER_DEFAULTS)] if kind is EntityType.BROKERS else []
    return brokers + defaults


def show_topic_configs(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="TOPIC…", help="Names of topics.")],
    show_all: All = False,
) -> None:
    """Show the settings of topics; `kctl configs` does so for brokers too, and changes them."""
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
        _row(entity, config, docs=docs)
        for entity, configs in found
        for config in configs
        if show_all or not config.is_default
    ]
    columns = COLUMNS[1:] if len(found) == 1 and session.output in _TABLES else COLUMNS
    session.out.rows(rows, [*columns, *([Column("documentation")] if docs else [])], name="config")


_TABLES = (OutputFormat.TABLE, OutputFormat.WIDE)


def _row(entity: Entity, config: Config, *, docs: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "entity": str(entity),
        "config": config.name,
        "value": SECRET if config.sensitive and config.value is None else config.value,
        "source": config.source,
        "type": config.type,
        "read_only": config.read_only,
        "sensitive": config.sensitive,
        "synonyms": [f"{s.source}:{s.name}={s.value}" for s in config.synonyms],
    }
    return row | ({"documentation": config.documentation} if docs else {})


@command(
    app,
    "alter",
    examples=[
        "kctl configs alter topic:orders --set retention.ms=86400000 --yes",
        "kctl configs alter brokers --delete log.retention.ms --dry-run",
        "kctl configs alter topic:orders --append cleanup.policy=compact --yes",
        "kctl configs alter --topic orders --add-config segment.ms=9000 --yes",
    ],
)
def alter(
    ctx: typer.Context,
    entities: Entities = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a value.")
    ] = None,
    delete_: Annotated[
        list[str] | None,
        typer.Option("--delete", metavar="KEY", help="Back to what counts without it."),
    ] = None,
    append_: Annotated[
        list[str] | None, typer.Option("--append", metavar="KEY=ITEM", help="Add to a list.")
    ] = None,
    subtract_: Annotated[
        list[str] | None,
        typer.Option("--subtract", metavar="KEY=ITEM", help="Take out of a list."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    add_config: Annotated[str | None, _kafka("--add-config", "Set.", "a=1,b=[x,y]")] = None,
    add_config_file: Annotated[
        Path | None, _kafka("--add-config-file", "Set what a properties file says.", "FILE")
    ] = None,
    delete_config: Annotated[
        list[str] | None, _kafka("--delete-config", "The same as --delete, with commas.", "a,b")
    ] = None,
    entity_type: EntityTypeOption = None,
    entity_name: EntityName = None,
    entity_default: EntityDefault = False,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: BrokerDefaults = False,
    broker_logger: BrokerLogger = None,
) -> None:
    """Change settings of topics and brokers; of one entity all the changes are made, or none."""
    kafka = KafkaEntity(
        entity_type, entity_name, entity_default, topic, broker, broker_defaults, broker_logger
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


@command(
    app,
    "set",
    examples=["kctl configs set topic:orders retention.ms=86400000 --yes"],
)
def set_values(
    ctx: typer.Context,
    entity: OneEntity,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help="What to set.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Set values."""
    changes = parse_changes(set_pairs=parse_pairs(pairs, "set"))
    _change(session_of(ctx), [parse_entity(entity)], changes, yes=yes, dry_run=dry_run)


@command(app, "delete", examples=["kctl configs delete topic:orders retention.ms --yes"])
def delete_values(
    ctx: typer.Context,
    entity: OneEntity,
    keys: Annotated[list[str], typer.Argument(metavar="KEY…", help="What to take back.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Take values back: what counts without them counts again."""
    changes = parse_changes(deleted=keys)
    _change(session_of(ctx), [parse_entity(entity)], changes, yes=yes, dry_run=dry_run)


@command(app, "append", examples=["kctl configs append topic:orders cleanup.policy=compact --yes"])
def append_items(
    ctx: typer.Context,
    entity: OneEntity,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=ITEM…", help="What to add.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Add items to values that are lists."""
    changes = parse_changes(appended=pairs)
    _change(session_of(ctx), [parse_entity(entity)], changes, yes=yes, dry_run=dry_run)


@command(
    app, "subtract", examples=["kctl configs subtract topic:orders cleanup.policy=compact --yes"]
)
def subtract_items(
    ctx: typer.Context,
    entity: OneEntity,
    pairs: Annotated[list[str], typer.Argument(metavar="KEY=ITEM…", help="What to take out.")],
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Take items out of values that are lists."""
    changes = parse_changes(subtracted=pairs)
    _change(session_of(ctx), [parse_entity(entity)], changes, yes=yes, dry_run=dry_run)


@command(
    app,
    "diff",
    examples=[
        "kctl configs diff topic:orders topic:payments",
        "kctl configs diff broker:1 brokers -o json",
    ],
)
def diff(ctx: typer.Context, left: OneEntity, right: OneEntity) -> ExitStatus:
    """Show the settings in which two entities differ; status 3 if there are any."""
    session = session_of(ctx)
    pair = [parse_entity(left), parse_entity(right)]
    found = ask(session, lambda client: describe_configs(client, pair))
    rows = diff_rows(found[pair[0]], found[pair[1]])
    session.out.rows(rows, DIFF_COLUMNS, name="config")
    return ExitStatus.FOUND if rows else ExitStatus.OK


def diff_rows(left: Sequence[Config], right: Sequence[Config]) -> list[dict[str, object]]:
    """A row per setting whose values differ; one that an entity does not have counts as unset."""
    sides = {config.name: config for config in left}, {config.name: config for config in right}
    rows: list[dict[str, object]] = []
    for name in sorted(sides[0].keys() | sides[1].keys()):
        one, other = sides[0].get(name), sides[1].get(name)
        values = [config.value if config else None for config in (one, other)]
        if values[0] != values[1]:
            sources = [config.source if config else None for config in (one, other)]
            rows.append({"config": name, "left": values[0], "right": values[1], "sources": sources})
    return rows


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
        raise CliError("nothing to change", "say what to set or delete", ExitStatus.USAGE)
    before = ask(session, lambda client: describe_configs(client, entities))
    for entity in entities:
        _require_set(entity, before[entity], changes)
    work = dict.fromkeys(entities, changes)
    if dry_run:
        checked = ask(session, lambda client: alter_configs(client, work, validate_only=True))
        for one in checked:
            if one.error:
                raise CliError(f"{one.name}: {one.reason}")
    rows = [row for entity in entities for row in change_rows(entity, before[entity], changes)]
    whose = str(entities[0]) if len(entities) == 1 else f"{len(entities)} entities"
    plan = Plan(f"Change the settings of {whose}?", rows, CHANGE_COLUMNS, "config")
    if not agreed(session, plan, yes=yes, dry_run=dry_run):
        return
    outcomes = ask(session, lambda client: alter_configs(client, work))
    if as_kafka and not any(one.error for one in outcomes):
        session.out.lines(map(completion_line, entities))
    else:
        show_outcomes(session.out, outcomes, "entity", "changed")


def _require_set(entity: Entity, configs: Sequence[Config], changes: Sequence[Change]) -> None:
    """CliError if something is to be deleted that was never set: it is likely misspelt."""
    if entity.own_source is None:
        return
    own = {config.name for config in configs if config.source == entity.own_source}
    deleted = [change.name for change in changes if change.operation is Operation.DELETE]
    if unset := [name for name in deleted if name not in own]:
        raise CliError(
            f"{entity} has no value of its own for {', '.join(unset)}",
            "kctl configs describe shows what was set",
        )
