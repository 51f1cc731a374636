"""The verbs of `kctl topics` that change something."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.configs import SOURCES
from kctl.admin.connection import ask
from kctl.admin.describe_topics import topic_configs
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.admin.topics import NewTopic, Topic, create_topics, delete_topics, find_topics
from kctl.commands.topic_show import require_all_found
from kctl.confirm import DryRun, Plan, Yes, agreed, refuse_if_read_only
from kctl.errors import CliError, ExitStatus
from kctl.kafka_text.topics import creation_lines, error_line, missing_line
from kctl.options import KafkaText, Session, session_of
from kctl.outcomes import Outcome, show_outcomes
from kctl.tables import Column
from kctl.words.configs import parse_assignment, parse_pairs
from kctl.words.topics import (
    INTERNAL_TOPICS,
    KAFKA_PANEL,
    KafkaTopic,
    Regex,
    Selection,
    TopicNames,
    require_some,
    select,
)

Partitions = Annotated[
    int | None, typer.Option("-p", "--partitions", help="How many partitions.", min=1)
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", help="How many replicas of each.", min=1, max=32767),
]
Configs = Annotated[
    list[str] | None,
    typer.Option("-c", "--config", metavar="KEY=VALUE", help="A setting; can be given again."),
]
ReplicaAssignment = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        metavar="1:2,2:3",
        help="Brokers of partition 0, then of 1, …; the first of each is the preferred leader.",
    ),
]
IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="A topic that is there already is no failure.")
]

DELETE_COLUMNS = [
    Column("topic"),
    Column("partitions", right=True),
    Column("records", right=True),
]


def create(
    ctx: typer.Context,
    names: TopicNames = None,
    partitions: Partitions = None,
    replication_factor: ReplicationFactor = None,
    configs: Configs = None,
    replica_assignment: ReplicaAssignment = None,
    if_not_exists: IfNotExists = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
    kafka_topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="NAME", help="TOPIC.", rich_help_panel=KAFKA_PANEL),
    ] = None,
) -> ExitStatus | None:
    """Create topics, all with the same layout and settings.

    What is not said is left to the brokers' defaults. With --dry-run the brokers check whether
    the topics could be created.
    """
    session = session_of(ctx)
    wanted = [*(names or ()), *([kafka_topic] if kafka_topic else [])]
    if not wanted:
        raise CliError("no topic named", "kctl topics create NAME", ExitStatus.USAGE)
    if replica_assignment and (partitions or replication_factor):
        raise CliError(
            "--replica-assignment says how many partitions and replicas there are",
            "leave out --partitions and --replication-factor",
            ExitStatus.USAGE,
        )
    assignment = parse_assignment(replica_assignment) if replica_assignment else None
    settings = parse_pairs(configs or ())
    topics = [
        NewTopic(name, partitions, replication_factor, assignment, settings)
        for name in dict.fromkeys(wanted)
    ]
    outcomes = _create(session, topics, dry_run=dry_run)
    if if_not_exists:
        outcomes = [_exists_is_fine(one) for one in outcomes]
    return _show_created(session, outcomes, dry_run, as_kafka=bool(text_format))


def _create(session: Session, topics: Sequence[NewTopic], *, dry_run: bool) -> list[Outcome]:
    if not dry_run:
        refuse_if_read_only(session)

    async def question(client: Client) -> list[Outcome]:
        return await create_topics(client, topics, timeout_s=session.timeout, validate_only=dry_run)

    return ask(session, question)


def _exists_is_fine(one: Outcome) -> Outcome:
    if one.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
        return one
    return replace(one, error=ErrorCode.NONE, message="exists already")


def _show_created(
    session: Session, outcomes: Sequence[Outcome], dry_run: bool, *, as_kafka: bool
) -> ExitStatus | None:
    if not as_kafka:
        done = "would be created" if dry_run else "created"
        show_outcomes(session.out, outcomes, "topic", done)
        return None
    for one in outcomes:
        created = not (one.error or one.message or dry_run)
        session.out.lines(creation_lines(one.name, created=created))
        if one.error:
            session.out.lines([error_line(one.message)])
    return ExitStatus.FAILED if any(one.error for one in outcomes) else ExitStatus.OK


def delete(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="A topic that is not there is no failure.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    kafka_topic: KafkaTopic = None,
) -> ExitStatus | None:
    """Delete topics with all their records.

    Kafka's own topics are deleted only when they are named in full: no pattern fits them.
    """
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=kafka_topic)
    require_some(wanted)
    found = ask(session, lambda client: find_topics(client, wanted.exact_names))
    topics = [topic for topic in found if topic.name in _deletable(wanted, found)]
    if text_format and not (topics or if_exists):
        session.out.lines([missing_line(kafka_topic or ",".join(names or ()))])
        return ExitStatus.FAILED
    if not if_exists:
        require_all_found(wanted, topics, session)
    if not topics:
        session.out.note("there is nothing to delete")
        return None
    plan = _deletion_plan(session, topics)
    if agreed(session, plan, yes=yes, dry_run=dry_run):
        chosen = [topic.name for topic in topics]
        outcomes = ask(
            session, lambda client: delete_topics(client, chosen, timeout_s=session.timeout)
        )
        return _show_deleted(session, outcomes, as_kafka=bool(text_format))
    return None


def _deletable(wanted: Selection, found: Sequence[Topic]) -> set[str]:
    meant = set(wanted.pick(topic.name for topic in found))
    return meant - (INTERNAL_TOPICS - set(wanted.names))


def _deletion_plan(session: Session, topics: Sequence[Topic]) -> Plan:
    records = ask(session, lambda client: _records(client, topics))
    rows = [
        {"topic": topic.name, "partitions": len(topic.partitions), "records": records[topic.name]}
        for topic in topics
    ]
    count = f"topic {topics[0].name}" if len(topics) == 1 else f"{len(topics)} topics"
    return Plan(f"Delete {count}?", rows, DELETE_COLUMNS, "topic")


async def _records(client: Client, topics: Sequence[Topic]) -> dict[str, int]:
    """About how many records each topic has: offsets that compaction left empty are counted."""
    partitions = [TopicPartition(topic.name, p.id) for topic in topics for p in topic.partitions]
    starts, ends = await log_starts(client, partitions), await log_ends(client, partitions)
    counts = {topic.name: 0 for topic in topics}
    for partition in starts.keys() & ends.keys():
        counts[partition.topic] += ends[partition] - starts[partition]
    return counts


def _show_deleted(
    session: Session, outcomes: Sequence[Outcome], *, as_kafka: bool
) -> ExitStatus | None:
    if not as_kafka:
        show_outcomes(session.out, outcomes, "topic", "deleted")
        return None
    failed = [one for one in outcomes if one.error]
    session.out.lines(error_line(one.message or one.error.name) for one in failed[:1])
    return ExitStatus.FAILED if failed else ExitStatus.OK


def clone(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The topic to copy.")],
    names: Annotated[list[str], typer.Argument(metavar="NEW…", help="Names of the new topics.")],
    partitions: Partitions = None,
    replication_factor: ReplicationFactor = None,
    configs: Configs = None,
    same_brokers: Annotated[
        bool,
        typer.Option("--same-brokers", help="Put the replicas where those of the source are."),
    ] = False,
    if_not_exists: IfNotExists = False,
    dry_run: DryRun = False,
) -> ExitStatus | None:
    """Create topics laid out and set up as another one is; records are not copied.

    What is said here counts more than what the source has.
    """
    session = session_of(ctx)
    model = ask(session, lambda client: _model(client, source))
    settings = {**model.configs, **parse_pairs(configs or ())}
    keeps_layout = same_brokers and not (partitions or replication_factor)
    topics = [
        NewTopic(
            name,
            partitions or model.num_partitions,
            replication_factor or model.replication_factor,
            model.assignment if keeps_layout else None,
            settings,
        )
        for name in dict.fromkeys(names)
    ]
    outcomes = _create(session, topics, dry_run=dry_run)
    if if_not_exists:
        outcomes = [_exists_is_fine(one) for one in outcomes]
    return _show_created(session, outcomes, dry_run, as_kafka=False)


async def _model(client: Client, source: str) -> NewTopic:
    """How the source was made: its layout, and the settings that are its own."""
    topics = await find_topics(client, [source])
    require_all_found(Selection((source,)), topics)
    (topic,) = topics
    configs = (await topic_configs(client, topics))[source]
    own = {c.name: c.value for c in configs if c.source == SOURCES[1] and c.value is not None}
    return NewTopic(
        source, len(topic.partitions), topic.replication_factor, topic.assignment(), own
    )
