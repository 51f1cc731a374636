"""`kctl produce`: records from lines, JSON or files into a topic."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import known_partitions
from kctl.confirm import DryRun, refuse_if_read_only
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, lone_command
from kctl.options import Session, session_of
from kctl.output import OutputFormat
from kctl.records.lines import (
    LineForm,
    numbered_records,
    parse_header,
    parse_separator,
    split_pieces,
)
from kctl.records.record import TopicRecord
from kctl.records.times import parse_time_ms
from kctl.streaming.choices import Acks, Compression, Partitioner, now_ms, split_properties, usage
from kctl.tables import Column

if TYPE_CHECKING:
    from kctl.streaming.sending import Sender

app = lone_command()

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("records", right=True),
    Column("first_offset", right=True),
    Column("last_offset", right=True),
]
STDIN = "-"
READER_PROPERTIES = frozenset({"parse.key", "key.separator", "null.marker"})
"""What kafka-console-producer's `--property` takes, and kctl with it."""


class InputForm(StrEnum):
    """What a piece of input is."""

    LINES = "lines"
    JSON = "json"
    WHOLE = "whole"


@dataclass(frozen=True)
class Delivery:
    """How the records are sent."""

    acks: Acks
    compression: Compression
    partitioner: Partitioner
    sync: bool
    transactional_id: str | None
    settings: tuple[str, ...]


@command(
    app,
    "produce",
    examples=[
        "kctl produce orders orders.txt --key-separator :",
        "kctl produce orders orders.jsonl --input json --acks all --compression zstd",
        "kctl produce orders photo.png --input whole --key photo -H type=png",
        "kctl produce orders orders.txt --transactional-id loader",
    ],
)
def produce(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic to write to.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Files to read; - or none is standard input.")
    ] = None,
    input_form: Annotated[
        InputForm,
        typer.Option("-i", "--input", help="A record is a line, a JSON line, or a whole file."),
    ] = InputForm.LINES,
    key_separator: Annotated[
        str | None,
        typer.Option("-K", "--key-separator", help="What stands between key and value."),
    ] = None,
    delimiter: Annotated[
        str, typer.Option("-D", "--delimiter", help="What stands between records.")
    ] = "\\n",
    key: Annotated[
        str | None, typer.Option("-k", "--key", help="The key of records that bring none.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("-H", "--header", metavar="NAME=VALUE", help="A header; can be given again."),
    ] = None,
    null_marker: Annotated[
        str | None, typer.Option(help="A key or value that is exactly this is null.")
    ] = None,
    null_empty: Annotated[
        bool, typer.Option("-Z", "--null-empty", help="An empty key or value is null.")
    ] = False,
    partition: Annotated[
        int | None, typer.Option("-p", "--partition", min=0, help="Write to this partition only.")
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Of records that bring none: ISO 8601, ms or -15m."),
    ] = None,
    partitioner: Annotated[
        Partitioner,
        typer.Option(help="By key as Java's clients or librdkafka do it, in turn, or at random."),
    ] = Partitioner.JAVA,
    acks: Annotated[
        Acks, typer.Option("-a", "--acks", help="Who must have a record before it counts.")
    ] = Acks.ALL,
    sync: Annotated[bool, typer.Option(help="Wait for every record before the next.")] = False,
    compression: Annotated[
        Compression, typer.Option("-z", "--compression", help="How batches are compressed.")
    ] = Compression.NONE,
    transactional_id: Annotated[
        str | None, typer.Option(help="Write everything in one transaction: all of it or nothing.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            "--property",
            metavar="KEY=VALUE",
            help="A setting of librdkafka, or parse.key, key.separator and null.marker as "
            "kafka-console-producer takes them.",
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Write records to a topic.

    A line is a record. With --input json it is an object as `kctl consume -o jsonl` prints it, so
    that what was consumed can be produced again with its keys, headers and timestamps.
    """
    session = session_of(ctx)
    reader, properties = split_properties(settings or [], READER_PROPERTIES)
    null_marker = reader.get("null.marker", null_marker)
    if reader.get("parse.key", "false").lower() == "true":
        key_separator = reader.get("key.separator", key_separator or "\\t")
    form = LineForm(
        key_separator=None if key_separator is None else usage(parse_separator, key_separator),
        key=None if key is None else key.encode(),
        headers=tuple(usage(parse_header, header) for header in headers or []),
        null_marker=b"" if null_empty else None if null_marker is None else null_marker.encode(),
        json=input_form is InputForm.JSON,
        timestamp_ms=None if timestamp is None else usage(parse_time_ms, timestamp, now_ms()),
        partition=partition,
    )
    ends = None if input_form is InputForm.WHOLE else usage(parse_separator, delimiter)
    records = read_records(files or [STDIN], form, ends)
    if dry_run:
        count = sum(1 for _ in records)
        session.out.note(f"{count} records for {topic} can be read; nothing was sent")
        return
    refuse_if_read_only(session)
    delivery = Delivery(acks, compression, partitioner, sync, transactional_id, tuple(properties))
    _send_all(session, topic, records, delivery)


def read_records(
    names: Iterable[str], form: LineForm, delimiter: bytes | None
) -> Iterator[TopicRecord]:
    """The records of all files, each as soon as it is there; CliError where input is wrong."""
    for name in names:
        with _opened(name) as stream:
            pieces = [stream.read()] if delimiter is None else split_pieces(stream, delimiter)
            try:
                for _, record in numbered_records(pieces, form, name):
                    yield record
            except ValueError as error:
                raise CliError(str(error), "--dry-run reads everything and sends nothing") from None


def _opened(name: str) -> "BinaryIO | nullcontext[BinaryIO]":
    if name == STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise CliError(f"cannot read {name}: {error.strerror}") from error


def _send_all(
    session: Session, topic: str, records: Iterator[TopicRecord], delivery: Delivery
) -> None:
    sender = _start(session, topic, delivery)
    together = sender.transaction(session.timeout) if delivery.transactional_id else nullcontext()
    try:
        with together:
            for record in records:
                sender.send(topic, record)
            sender.flush()
    except KeyboardInterrupt:
        sender.purge()
        _show(session, sender)
        raise typer.Exit(ExitStatus.INTERRUPTED) from None
    _show(session, sender)
    if sender.outcome.failed:
        raise CliError(
            f"{sender.outcome.failed} records were not written: {sender.outcome.first_error}"
        )


def _start(session: Session, topic: str, delivery: Delivery) -> "Sender":
    """A sender whose cluster is known to answer: librdkafka itself would try for minutes."""

    async def count(client: Client) -> int:
        return len((await known_partitions(client, [topic]))[topic] or [0])

    partitions = ask(session, count)
    from kctl.streaming.config import client_properties  # librdkafka, when it is needed
    from kctl.streaming.sending import Sender

    properties = {
        "acks": delivery.acks,
        "compression.type": delivery.compression,
        "message.timeout.ms": int(session.timeout * 1000),
        **client_properties(session, delivery.settings),
    }
    if delivery.transactional_id:
        properties["transactional.id"] = delivery.transactional_id
        properties["transaction.timeout.ms"] = max(60_000, int(session.timeout * 1000))
    return Sender(properties, delivery.partitioner, lambda _: partitions, sync=delivery.sync)


def _show(session: Session, sender: "Sender") -> None:
    from kctl.streaming.sending import outcome_rows

    written = sender.outcome.written
    if session.output is not OutputFormat.TABLE:
        session.out.rows(outcome_rows(written.items()), COLUMNS, name="partition")
        return
    places = len(written)
    where = f"in {places} partition{'s' if places != 1 else ''}"
    session.out.note(f"{sender.outcome.records} records written {where}")
