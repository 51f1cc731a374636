"""`kctl offsets`: where the logs of partitions start and end, and where a time falls in them."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import OffsetAnswer, list_offsets
from kctl.admin.topics import find_topics
from kctl.groups import command, lone_command
from kctl.kafka_text.records import offset_lines
from kctl.options import KafkaText, session_of
from kctl.tables import Column
from kctl.words.partitions import (
    Fits,
    PartitionChoice,
    no_partition_fits,
    parse_partition_words,
    parse_timestamp,
    parse_topic_and_partitions,
    parse_topic_partitions,
    usage_error,
)
from kctl.words.topics import KAFKA_PANEL

app = lone_command()

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("offset", right=True),
    Column("timestamp", wide=True, right=True),
    Column("time", wide=True),
    Column("leader_epoch", wide=True, right=True),
]
UNKNOWN_OFFSET = -1


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
            help="Topics, or some of their partitions; all topics if left out.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            "--time",
            metavar="WHEN",
            help="earliest, latest, max-timestamp, a time, milliseconds, or -15m: the first"
            " record of that time or later.",
        ),
    ] = "latest",
    read_committed: Annotated[
        bool,
        typer.Option("--read-committed", help="The end is where unfinished transactions begin."),
    ] = False,
    exclude_internal: Annotated[
        bool,
        typer.Option(
            "--exclude-internal",
            "--exclude-internal-topics",
            help="Leave out the topics that Kafka keeps for itself.",
        ),
    ] = False,
    text_format: KafkaText = None,
    topic: Annotated[str | None, _kafka("--topic", "Topics that fit.", "REGEX")] = None,
    numbers: Annotated[str | None, _kafka("--partitions", "Only these.", "0,1")] = None,
    rules: Annotated[
        str | None,
        _kafka("--topic-partitions", "Patterns and ranges; ends are left out.", "t1:1,t2:0-3"),
    ] = None,
) -> None:
    """Show offsets of partitions: their ends, their beginnings, or where a time falls.

    A partition without a leader, or without a record that late, has no offset.
    """
    session = session_of(ctx)
    timestamp = parse_timestamp(at)
    choice = PartitionChoice(_rules(partitions, topic, numbers, rules), exclude_internal)

    async def question(client: Client) -> dict[TopicPartition, OffsetAnswer | None]:
        present = await find_topics(client)
        chosen = choice.pick(TopicPartition(t.name, p.id) for t in present for p in t.partitions)
        wanted = dict.fromkeys(chosen, timestamp)
        found = await list_offsets(client, wanted, read_committed=read_committed)
        return {partition: found.get(partition) for partition in chosen}

    found = ask(session, question)
    if not found:
        raise no_partition_fits(
            *(partitions or ()), topic, numbers and f"--partitions {numbers}", rules
        )
    if text_format:
        known = {p: a.offset for p, a in found.items() if a and a.offset != UNKNOWN_OFFSET}
        session.out.lines(offset_lines(known))
    else:
        session.out.rows([_row(p, a) for p, a in found.items()], COLUMNS, name="offset")


def _rules(
    words: list[str] | None, topic: str | None, numbers: str | None, rules: str | None
) -> tuple[Fits, ...]:
    if rules and (topic or numbers):
        raise usage_error("--topic-partitions stands alone", "leave out --topic and --partitions")
    if rules:
        return (*parse_partition_words(words or ()), *parse_topic_partitions(rules))
    if words and not (topic or numbers):
        return parse_partition_words(words)
    return (*parse_partition_words(words or ()), parse_topic_and_partitions(topic, numbers))


def _row(partition: TopicPartition, answer: OffsetAnswer | None) -> dict[str, object]:
    known = answer if answer and answer.offset != UNKNOWN_OFFSET else None
    timestamp = known.timestamp if known and known.timestamp >= 0 else None
    moment = None if timestamp is None else datetime.fromtimestamp(timestamp / 1000, UTC)
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": known.offset if known else None,
        "timestamp": timestamp,
        "time": moment and moment.isoformat(timespec="milliseconds"),
        "leader_epoch": known.leader_epoch if known and known.leader_epoch >= 0 else None,
    }
