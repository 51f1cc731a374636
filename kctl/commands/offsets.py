"""`kctl offsets`."""

from typing import Annotated, Any

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import Errors, list_offsets
from kctl.admin.topics import find_topics
from kctl.cli.arguments.partitions import (
    PartitionChoice,
    PartitionRule,
    no_partition_matches,
    parse_partitions,
    parse_timestamp,
    parse_topic_and_partitions,
    parse_topic_partitions,
)
from kctl.cli.arguments.topics import KAFKA_PANEL
from kctl.cli.command_tree import command, lone_command
from kctl.cli.errors import CliError, usage_error
from kctl.cli.options import KafkaText, session_of
from kctl.cli.tables import partition_name
from kctl.model.offsets import OffsetAnswer
from kctl.views.kafka_text.records import offset_lines
from kctl.views.offsets import FAILED_OFFSET_COLUMNS, OFFSET_COLUMNS, offset_row
from kctl.views.outcomes import HINTS
from kctl.views.quantities import plural

app = lone_command()


def _kafka(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(
        name, help=text, metavar=metavar, show_default=False, rich_help_panel=KAFKA_PANEL
    )


@command(
    app,
    "offsets",
    examples=[
        "kctl offsets orders",
        "kctl offsets orders:0,2 --time earliest",
        "kctl offsets orders --time -15m -o wide",
        "kctl offsets --topic-partitions 'orders:0-2,payments' --format kafka",
    ],
)
def offsets(
    ctx: typer.Context,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC[:PARTITION,…]…",
            help="Topics, or some of their partitions (default: all topics).",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="WHEN",
            help="earliest, latest, max-timestamp, or the first record at or after a time: "
            "ISO 8601, milliseconds, or -15m.",
        ),
    ] = "latest",
    read_committed: Annotated[
        bool,
        typer.Option("--read-committed", help="Use the last stable offset as log end."),
    ] = False,
    exclude_internal: Annotated[
        bool,
        typer.Option(
            "--exclude-internal",
            "--exclude-internal-topics",
            help="Exclude Kafka's internal topics.",
        ),
    ] = False,
    text_format: KafkaText = None,
    topic: Annotated[str | None, _kafka("--topic", "Topics that match.", "REGEX")] = None,
    numbers: Annotated[str | None, _kafka("--partitions", "Only these partitions.", "0,1")] = None,
    rules: Annotated[
        str | None,
        _kafka(
            "--topic-partitions",
            "Patterns and ranges of partitions; ends are exclusive.",
            "t1:1,t2:0-3",
        ),
    ] = None,
) -> None:
    """Show the offsets of partitions: log start, log end, or at a given time.

    No offset is shown for a partition without a matching record. If a partition has no leader, or
    its leader returns an error, the error is shown and the status is 1.
    """
    session = session_of(ctx)
    timestamp = parse_timestamp(at)
    choice = PartitionChoice(_rules(partitions, topic, numbers, rules), exclude_internal)

    errors: Errors = {}
    present_names: list[str] = []

    async def question(client: Client) -> dict[TopicPartition, OffsetAnswer | None]:
        present = await find_topics(client)
        present_names.extend(one.name for one in present)
        chosen = choice.pick(TopicPartition(t.name, p.id) for t in present for p in t.partitions)
        wanted = dict.fromkeys(chosen, timestamp)
        found = await list_offsets(client, wanted, read_committed=read_committed, errors=errors)
        return {partition: found.get(partition) for partition in chosen}

    found = ask(session, question, partial=True)
    if not found:
        raise no_partition_matches(
            *(partitions or ()),
            topic,
            numbers and f"--partitions {numbers}",
            rules,
            topics=present_names if partitions else (),
        )
    if text_format:
        known = {p: a.offset for p, a in found.items() if a and a.is_known}
        session.out.lines(offset_lines(known))
    else:
        rows = [offset_row(p, a, errors.get(p)) for p, a in found.items()]
        columns = FAILED_OFFSET_COLUMNS if errors else OFFSET_COLUMNS
        session.out.rows(rows, columns, name=partition_name)
    if errors:
        first = min(errors)
        raise CliError(
            f"no offset for {plural(len(errors), 'partition')}; the first, {first}:"
            f" {errors[first].name}",
            HINTS.get(errors[first], ""),
        )


def _rules(
    words: list[str] | None, topic: str | None, numbers: str | None, rules: str | None
) -> tuple[PartitionRule, ...]:
    if rules and (topic or numbers):
        raise usage_error(
            "--topic-partitions cannot be combined with --topic or --partitions",
            "omit --topic and --partitions",
        )
    if rules:
        return (*parse_partitions(words or ()), *parse_topic_partitions(rules))
    if words and not (topic or numbers):
        return parse_partitions(words)
    return (*parse_partitions(words or ()), parse_topic_and_partitions(topic, numbers))
