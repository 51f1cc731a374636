"""`kctl topics list` and `describe`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.model import Uuid
from kctl.admin.connection import ask
from kctl.admin.describe_topics import describe_topics
from kctl.admin.topic_selection import pick_topics, require_all_found
from kctl.admin.topics import find_topics
from kctl.cli.arguments.topics import (
    ExcludeInternal,
    KafkaTopic,
    Regex,
    Selection,
    TopicNames,
    select,
)
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.output import OutputFormat
from kctl.model.topics import Description, Topic
from kctl.views.kafka_text.topics import (
    description_lines,
    in_tool_order,
    list_lines,
    missing_line,
    override_lines,
    partition_line,
)
from kctl.views.topics import (
    HEALTH_COLUMNS,
    LIST_COLUMNS,
    OVERRIDE_COLUMNS,
    PARTITION_COLUMNS,
    PartitionFilter,
    heading,
    list_rows,
    override_rows,
    partition_rows,
    topic_records,
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
    """List topics with their numbers of partitions and replicas."""
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=kafka_topic, exclude_internal=exclude_internal)
    found = ask(session, lambda client: find_topics(client, wanted.exact_names))
    topics = pick_topics(found, wanted)
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
        str | None, typer.Option("--topic-id", metavar="ID", help="Topic id.")
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
            help="Only partitions without a live leader.",
        ),
    ] = False,
    under_min_isr: Annotated[
        bool,
        typer.Option(
            "--under-min-isr",
            "--under-min-isr-partitions",
            help="Only partitions with fewer in-sync replicas than min.insync.replicas.",
        ),
    ] = False,
    at_min_isr: Annotated[
        bool,
        typer.Option(
            "--at-min-isr",
            "--at-min-isr-partitions",
            help="Only partitions with exactly min.insync.replicas in-sync replicas.",
        ),
    ] = False,
    with_overrides: Annotated[
        bool,
        typer.Option(
            "--topics-with-overrides",
            "--with-overrides",
            help="Only topics with overridden configs, without their partitions.",
        ),
    ] = False,
    exclude_internal: ExcludeInternal = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Do not fail if a topic does not exist.")
    ] = False,
    text_format: KafkaText = None,
    kafka_topic: KafkaTopic = None,
) -> ExitStatus | None:
    """Describe topics: leaders, replicas, ISR and status of partitions.

    With -o wide and in formats for programs, also log start and end offsets and sizes.
    """
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=kafka_topic, exclude_internal=exclude_internal)
    by_id = Uuid.parse(topic_id) if topic_id and _is_uuid(topic_id) else None
    found = _describe(session, wanted, by_id, with_data=_needs_data(session, text_format))
    filters = PartitionFilter(under_replicated, unavailable, under_min_isr, at_min_isr)
    if text_format:
        return _show_as_kafka(session, found, filters, with_overrides, kafka_topic or "", if_exists)
    if by_id is not None:
        _require_id(found, by_id, if_exists)
    elif not if_exists:
        require_all_found(wanted, found.topics, session)
    if with_overrides:
        session.out.rows(override_rows(found), OVERRIDE_COLUMNS, name="topic")
    else:
        _show(session, found, filters)
    return None


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
        return pick_topics(topics, wanted)

    names = None if by_id is not None else wanted.exact_names
    return ask(
        session,
        lambda client: describe_topics(client, names, choose, with_data=with_data),
        partial=True,
    )


def _needs_data(session: Session, text_format: object) -> bool:
    """Whether the output contains offsets and sizes."""
    if text_format or session.output is OutputFormat.NAME:
        return False
    return not (session.output.is_for_people and session.row_options.is_default_rows) or (
        session.output is OutputFormat.WIDE
    )


def _require_id(found: Description, topic_id: Uuid, if_exists: bool) -> None:
    if not (found.topics or if_exists):
        raise CliError(f"no topic has the id {topic_id}", "kctl topics list -o wide shows ids")


def _show_as_kafka(
    session: Session,
    found: Description,
    filters: PartitionFilter,
    with_overrides: bool,
    requested: str,
    if_exists: bool,
) -> ExitStatus:
    if requested and not (found.topics or if_exists):
        session.out.lines([missing_line(requested)])
        return ExitStatus.FAILED
    if filters.is_set:
        session.out.lines(
            partition_line(topic, partition)
            for topic in in_tool_order(found.topics)
            for partition in topic.partitions
            if filters.matches(found, topic, partition)
        )
    else:
        lines = override_lines if with_overrides else description_lines
        session.out.lines(lines(found.topics, found.configs))
    return ExitStatus.OK


def _show(session: Session, found: Description, filters: PartitionFilter) -> None:
    out = session.out
    is_flat = not out.options.is_default_rows  # columns and their order are those of partitions
    if session.output is OutputFormat.NAME or (session.output in FOR_PROGRAMS and not is_flat):
        out.rows(topic_records(found, filters), LIST_COLUMNS, name="topic")
    elif filters.is_set or is_flat or session.output is OutputFormat.CSV:
        rows = [row for topic in found.topics for row in partition_rows(found, topic, filters)]
        out.rows(rows, HEALTH_COLUMNS, name="topic")
    else:
        for index, topic in enumerate(found.topics):
            out.lines([""] * (index > 0))
            out.heading(heading(found, topic))
            out.rows(partition_rows(found, topic), PARTITION_COLUMNS, name="partition")
