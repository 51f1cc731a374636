"""`kctl topics create` and `clone`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.describe_topics import topic_configs
from kctl.admin.topic_selection import require_all_found, require_brokers
from kctl.admin.topics import create_topics, find_topics
from kctl.cli.arguments.amounts import MAX_PARTITIONS
from kctl.cli.arguments.configs import parse_assignment, parse_pairs
from kctl.cli.arguments.topics import (
    KAFKA_PANEL,
    Selection,
    TopicNames,
)
from kctl.cli.confirmation import DryRun, refuse_if_read_only
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import KafkaText, Session, session_of
from kctl.model.configs import TOPIC_SOURCE
from kctl.model.outcomes import Outcome
from kctl.model.topics import NewTopic, Topic
from kctl.views.kafka_text.topics import creation_lines, error_line
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.quantities import plural

Partitions = Annotated[
    int | None,
    typer.Option("-p", "--partitions", help="Number of partitions.", min=1, max=MAX_PARTITIONS),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", help="Replication factor.", min=1, max=32767),
]
Configs = Annotated[
    list[str] | None,
    typer.Option("-c", "--config", metavar="KEY=VALUE", help="Topic config; can be repeated."),
]
ReplicaAssignment = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        metavar="1:2,2:3",
        help="Broker ids of partition 0, of partition 1 and so on; the first id is the "
        "preferred leader.",
    ),
]
IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="Do not fail if a topic already exists.")
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
        typer.Option("--topic", metavar="NAME", help="Same as TOPIC.", rich_help_panel=KAFKA_PANEL),
    ] = None,
) -> ExitStatus | None:
    """Create topics with the same partitions, replicas and configs.

    The brokers' defaults apply to what is not specified. With --dry-run the brokers validate the
    request without creating the topics.
    """
    session = session_of(ctx)
    wanted = [*(names or ()), *([kafka_topic] if kafka_topic else [])]
    if not wanted:
        raise CliError("no topic specified", "kctl topics create NAME", ExitStatus.USAGE)
    if replica_assignment and (partitions or replication_factor):
        raise CliError(
            "--replica-assignment determines the numbers of partitions and replicas",
            "omit --partitions and --replication-factor",
            ExitStatus.USAGE,
        )
    assignment = parse_assignment(replica_assignment) if replica_assignment else None
    settings = parse_pairs(configs or ())
    topics = [
        NewTopic(name, partitions, replication_factor, assignment, settings)
        for name in dict.fromkeys(wanted)
    ]
    if assignment and not text_format:  # Kafka's tool does not check
        require_brokers(session, assignment)
    outcomes = _create(session, topics, dry_run=dry_run)
    if if_not_exists:
        existing = _existing(session, topics, outcomes)
        outcomes = [_exists_is_fine(one, existing.get(one.name, "")) for one in outcomes]
    return _show_created(session, outcomes, dry_run, as_kafka=bool(text_format))


def _create(session: Session, topics: Sequence[NewTopic], *, dry_run: bool) -> list[Outcome]:
    if not dry_run:
        refuse_if_read_only(session, outcome_columns("topic"))

    async def question(client: Client) -> list[Outcome]:
        return await create_topics(client, topics, timeout_s=session.timeout, validate_only=dry_run)

    check = "" if dry_run else f"kctl topics describe {' '.join(one.name for one in topics)}"
    return ask(session, question, check=check)


def _existing(
    session: Session, topics: Sequence[NewTopic], outcomes: Sequence[Outcome]
) -> dict[str, str]:
    """How the topics that exist already differ from the wanted ones, by name."""
    names = [one.name for one in outcomes if one.error is ErrorCode.TOPIC_ALREADY_EXISTS]
    if not names:
        return {}
    wanted = {topic.name: topic for topic in topics}
    found = ask(session, lambda client: find_topics(client, names))
    return {topic.name: _difference(wanted[topic.name], topic) for topic in found}


def _difference(wanted: NewTopic, found: Topic) -> str:
    pairs = [
        ("partition", wanted.num_partitions, len(found.partitions)),
        ("replica", wanted.replication_factor, found.replication_factor),
    ]
    differing = [
        f"{plural(is_, noun)} instead of {be}" for noun, be, is_ in pairs if be and be != is_
    ]
    return f", with {' and '.join(differing)}" if differing else ""


def _exists_is_fine(one: Outcome, difference: str) -> Outcome:
    if one.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
        return one
    return replace(one, error=ErrorCode.NONE, message=f"already exists{difference}")


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


def clone(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Topic to clone.")],
    names: Annotated[list[str], typer.Argument(metavar="NEW…", help="Names of the new topics.")],
    partitions: Partitions = None,
    replication_factor: ReplicationFactor = None,
    configs: Configs = None,
    same_brokers: Annotated[
        bool,
        typer.Option("--same-brokers", help="Assign the replicas to the same brokers."),
    ] = False,
    if_not_exists: IfNotExists = False,
    dry_run: DryRun = False,
) -> ExitStatus | None:
    """Create topics with the partitions, replicas and configs of another one, without its records.

    Options override the values of the source.
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
        existing = _existing(session, topics, outcomes)
        outcomes = [_exists_is_fine(one, existing.get(one.name, "")) for one in outcomes]
    return _show_created(session, outcomes, dry_run, as_kafka=False)


async def _model(client: Client, source: str) -> NewTopic:
    """Layout and own configs of the source."""
    topics = await find_topics(client, [source])
    require_all_found(Selection((source,)), topics)
    (topic,) = topics
    configs = (await topic_configs(client, topics))[source]
    own = {c.name: c.value for c in configs if c.source == TOPIC_SOURCE and c.value is not None}
    return NewTopic(
        source, len(topic.partitions), topic.replication_factor, topic.assignment(), own
    )
