"""The verbs of `kctl topics` that only look."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.model import Uuid
from kctl.admin.connection import ask
from kctl.admin.describe_topics import Description, describe_topics
from kctl.admin.topics import Topic, find_topics
from kctl.errors import CliError, ExitStatus
from kctl.kafka_text.topics import (
    description_lines,
    in_tool_order,
    list_lines,
    missing_line,
    override_lines,
    partition_line,
)
from kctl.options import KafkaText, Session, session_of
from kctl.output import OutputFormat
from kctl.tables import Column
from kctl.topic_view import (
    HEALTH_COLUMNS,
    LIST_COLUMNS,
    PARTITION_COLUMNS,
    Health,
    heading,
    list_rows,
    partition_rows,
    topic_records,
)
from kctl.words.missing import no_such
from kctl.words.topics import (
    ExcludeInternal,
    KafkaTopic,
    Regex,
    Selection,
    TopicNames,
    select,
)

FOR_PROGRAMS = (OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.YAML)


def list_topics(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    exclude_internal: ExcludeInternal = False,
    text_format: KafkaText = None,
    kafka_topic: KafkaTopic = None,
) -> None:
    """List topics: how many partitions and replicas they have, and how many are short of some."""
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=kafka_topic, exclude_internal=exclude_internal)
    found = ask(session, lambda client: find_topics(client, wanted.exact_names))
    topics = _pick(found, wanted)
    if text_format:
        session.out.lines(list_lines([topic.name for topic in topics]))
    else:
        require_all_found(wanted, found, session)
        session.out.rows(list_rows(topics), LIST_COLUMNS, name="topic")


def describe(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    topic_id: Annotated[
        str | None, typer.Option("--topic-id", metavar="ID", help="The topic with this id.")
    ] = None,
    under_replicated: Annotated[
        bool,
        typer.Option(
            "--under-replicated",
            "--under-replicated-partitions",
            help="Only partitions with replicas missing from the ISR.",
        ),
    ] = False,
    unavailable: Annotated[
        bool,
        typer.Option(
            "--unavailable",
            "--unavailable-partitions",
            help="Only partitions without a leader that is up.",
        ),
    ] = False,
    under_min_isr: Annotated[
        bool,
        typer.Option(
            "--under-min-isr",
            "--under-min-isr-partitions",
            help="Only partitions with fewer replicas in sync than min.insync.replicas.",
        ),
    ] = False,
    at_min_isr: Annotated[
        bool,
        typer.Option(
            "--at-min-isr",
            "--at-min-isr-partitions",
            help="Only partitions with just min.insync.replicas in sync.",
        ),
    ] = False,
    with_overrides: Annotated[
        bool,
        typer.Option(
            "--topics-with-overrides",
            "--with-overrides",
            help="Only topics with settings of their own, without their partitions.",
        ),
    ] = False,
    exclude_internal: ExcludeInternal = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="A topic that is not there is no failure.")
    ] = False,
    text_format: KafkaText = None,
    kafka_topic: KafkaTopic = None,
) -> ExitStatus | None:
    """Show how topics are laid out: leaders, replicas, ISR, and what is wrong.

    With -o wide, or a format for programs, also where the log of each partition starts and ends,
    and its size.
    """
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=kafka_topic, exclude_internal=exclude_internal)
    by_id = Uuid.parse(topic_id) if topic_id and _is_uuid(topic_id) else None
    found = _describe(session, wanted, by_id, with_data=_needs_data(session, text_format))
    health = Health(under_replicated, unavailable, under_min_isr, at_min_isr)
    if text_format:
        return _show_as_kafka(session, found, health, with_overrides, kafka_topic or "", if_exists)
    if by_id is not None:
        _require_id(found, by_id, if_exists)
    elif not if_exists:
        require_all_found(wanted, found.topics, session)
    if with_overrides:
        _show_overrides(session, found)
    else:
        _show(session, found, health)
    return None


def require_all_found(
    wanted: Selection, topics: Sequence[Topic], session: Session | None = None
) -> None:
    """CliError naming what was asked for and is not there; with a session, also what may be meant.

    `topics` may be those alone that were asked for by name, so the cluster is asked for the rest.
    """
    if missing := wanted.missing(topic.name for topic in topics):
        there = ask(session, find_topics) if session else topics
        raise no_such("topic", missing, [topic.name for topic in there])


def _pick(topics: Sequence[Topic], wanted: Selection) -> list[Topic]:
    meant = set(wanted.pick(topic.name for topic in topics))
    return [topic for topic in topics if topic.name in meant]


def _is_uuid(text: str) -> bool:
    try:
        Uuid.parse(text)
    except ValueError as error:
        raise CliError(
            str(error), "kctl topics list -o wide shows ids", ExitStatus.USAGE
        ) from error
    return True


def _describe(
    session: Session, wanted: Selection, by_id: Uuid | None, *, with_data: bool
) -> Description:
    def choose(topics: Sequence[Topic]) -> Sequence[Topic]:
        if by_id is not None:
            return [topic for topic in topics if topic.topic_id == by_id]
        return _pick(topics, wanted)

    names = None if by_id is not None else wanted.exact_names
    return ask(session, lambda client: describe_topics(client, names, choose, with_data=with_data))


def _needs_data(session: Session, text_format: object) -> bool:
    """Whether what is shown has offsets and sizes in it."""
    return not text_format and session.output not in (OutputFormat.TABLE, OutputFormat.NAME)


def _require_id(found: Description, topic_id: Uuid, if_exists: bool) -> None:
    if not (found.topics or if_exists):
        raise CliError(f"no topic has the id {topic_id}", "kctl topics list -o wide shows ids")


def _show_as_kafka(
    session: Session,
    found: Description,
    health: Health,
    with_overrides: bool,
    requested: str,
    if_exists: bool,
) -> ExitStatus:
    if requested and not (found.topics or if_exists):
        session.out.lines([missing_line(requested)])
        return ExitStatus.FAILED
    if health.is_asked_for:
        session.out.lines(
            partition_line(topic, partition)
            for topic in in_tool_order(found.topics)
            for partition in topic.partitions
            if health.wants(found, topic, partition)
        )
    else:
        lines = override_lines if with_overrides else description_lines
        session.out.lines(lines(found.topics, found.configs))
    return ExitStatus.OK


def _show_overrides(session: Session, found: Description) -> None:
    columns = [*LIST_COLUMNS[:3], *LIST_COLUMNS[4:]]
    rows = []
    for topic, row in zip(found.topics, list_rows(found.topics), strict=True):
        own = [f"{c.name}={c.value}" for c in found.configs[topic.name] if not c.is_default]
        if own:
            rows.append({**row, "configs": own})
    session.out.rows(rows, [*columns, Column("configs")], name="topic")


def _show(session: Session, found: Description, health: Health) -> None:
    out = session.out
    if session.output in FOR_PROGRAMS or session.output is OutputFormat.NAME:
        out.rows(topic_records(found, health), LIST_COLUMNS, name="topic")
    elif health.is_asked_for or session.output is OutputFormat.CSV:
        rows = [row for topic in found.topics for row in partition_rows(found, topic, health)]
        out.rows(rows, HEALTH_COLUMNS, name="topic")
    else:
        for index, topic in enumerate(found.topics):
            out.lines([""] * (index > 0))
            out.heading(heading(found, topic))
            out.rows(partition_rows(found, topic), PARTITION_COLUMNS, name="partition")
