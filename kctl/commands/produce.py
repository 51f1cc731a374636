"""`kctl produce`: write records to a topic, from lines, JSON or files."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import known_partitions, partitions_of
from kctl.cli.arguments.amounts import INT32_MAX
from kctl.cli.arguments.topics import KAFKA_PANEL
from kctl.cli.client_properties import read_client_properties
from kctl.cli.command_tree import command, lone_command
from kctl.cli.confirmation import DryRun, refuse_if_read_only
from kctl.cli.errors import CliError, ExitStatus, usage, usage_error
from kctl.cli.options import Session, session_of
from kctl.cli.output import OutputFormat
from kctl.cli.tables import partition_name
from kctl.cli.times import now_ms, parse_time_ms
from kctl.commands.registry.options import (
    KeyFormat,
    KeyMessage,
    KeySchema,
    RegistryUrl,
    ValueFormat,
    ValueMessage,
    ValueSchema,
)
from kctl.model.records import TopicRecord
from kctl.records.lines import (
    HeaderForm,
    LineForm,
    numbered_records,
    parse_header,
    parse_separator,
    split_pieces,
)
from kctl.streaming.choices import Acks, Compression, Partitioner, RecordFormat, split_properties
from kctl.streaming.java_classes import require_line_reader
from kctl.streaming.partitioning import explain_partition
from kctl.views.quantities import plural
from kctl.views.written import COLUMNS, EXPLAINED_COLUMNS, explained_row, written_row

if TYPE_CHECKING:
    from kctl.streaming.sending import Sender

app = lone_command()

STDIN = "-"
_HEADER_PROPERTIES = {
    "headers.delimiter": "delimiter",
    "headers.separator": "separator",
    "headers.key.separator": "key_separator",
}
"""Properties of the headers in a line, and the fields of HeaderForm."""
READER_PROPERTIES = frozenset(
    {"parse.key", "key.separator", "null.marker", "parse.headers", *_HEADER_PROPERTIES}
)
"""Properties of kafka-console-producer's `--property` that kctl accepts too."""


class InputForm(StrEnum):
    """How the input is split into records."""

    LINES = "lines"
    JSON = "json"
    WHOLE = "whole"


@dataclass(frozen=True)
class Delivery:
    """How records are sent."""

    acks: Acks
    compression: Compression
    partitioner: Partitioner
    sync: bool
    transactional_id: str | None
    settings: tuple[str, ...]
    auto_create: bool = False
    """Whether brokers may create the topic, if auto.create.topics.enable is set."""


@command(
    app,
    "produce",
    examples=[
        "kctl produce orders orders.txt --key-separator :",
        "kctl produce orders orders.jsonl --input json --acks all --compression zstd",
        "kctl produce orders photo.png --input whole --key photo -H type=png",
        "kctl produce orders orders.txt --transactional-id loader",
        "kctl produce orders orders.txt --key-separator : --explain",
        "kctl produce orders orders.jsonl --value-format avro",
        "kctl produce orders o.jsonl --value-format avro --value-schema @order.avsc",
    ],
)
def produce(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="Topic to write to.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE…", help="Files to read (default: stdin); - is stdin.", show_default=False
        ),
    ] = None,
    input_form: Annotated[
        InputForm,
        typer.Option("-i", "--input", help="One record per line, per line of JSON, or per file."),
    ] = InputForm.LINES,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "-K", "--key-separator", metavar="TEXT", help="Separator between key and value."
        ),
    ] = None,
    delimiter: Annotated[
        str, typer.Option("-D", "--delimiter", metavar="TEXT", help="Separator between records.")
    ] = "\\n",
    key: Annotated[
        str | None, typer.Option("-k", "--key", help="Key of records without a key.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "-H",
            "--header",
            metavar="NAME=VALUE",
            help="Header to add, null without =VALUE; can be repeated.",
        ),
    ] = None,
    null_marker: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text that stands for a null key or value.")
    ] = None,
    null_empty: Annotated[
        bool, typer.Option("-Z", "--null-empty", help="Write empty keys and values as null.")
    ] = False,
    partition: Annotated[
        int | None,
        typer.Option(
            "-p", "--partition", min=0, max=INT32_MAX, help="Write to this partition only."
        ),
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Timestamp of records without one: ISO 8601, milliseconds or -15m."
        ),
    ] = None,
    partitioner: Annotated[
        Partitioner,
        typer.Option(
            help="Partition by key hash (as Java clients or librdkafka do), round robin, or random."
        ),
    ] = Partitioner.JAVA,
    keep_partitions: Annotated[
        bool,
        typer.Option(
            "--keep-partitions",
            help="Write JSON records to their own partition instead of the one of their key.",
        ),
    ] = False,
    key_format: KeyFormat = RecordFormat.BYTES,
    key_schema: KeySchema = None,
    key_message: KeyMessage = None,
    value_format: ValueFormat = RecordFormat.BYTES,
    value_schema: ValueSchema = None,
    value_message: ValueMessage = None,
    registry: RegistryUrl = None,
    auto_create: Annotated[
        bool,
        typer.Option("--auto-create", help="Let the brokers create the topic if it is missing."),
    ] = False,
    acks: Annotated[
        Acks, typer.Option("-a", "--acks", help="Acknowledgements to wait for.")
    ] = Acks.ALL,
    sync: Annotated[
        bool,
        typer.Option(help="Wait for the acknowledgement of each record before sending the next."),
    ] = False,
    compression: Annotated[
        Compression, typer.Option("-z", "--compression", help="Compression type.")
    ] = Compression.NONE,
    transactional_id: Annotated[
        str | None,
        typer.Option(help="Write all records in one transaction with this transactional id."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            "--property",
            metavar="KEY=VALUE",
            help="Set a librdkafka property, or parse.key, parse.headers, key.separator, "
            "headers.delimiter or null.marker of kafka-console-producer.",
        ),
    ] = None,
    reader_config: Annotated[
        Path | None,
        typer.Option(
            "--reader-config",
            metavar="FILE",
            help="File of reader properties, such as parse.key; -X takes precedence.",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
    line_reader: Annotated[
        str | None, typer.Option("--line-reader", hidden=True, help="Java class of the reader.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show the partition of each record and why; nothing is sent."
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Write records to an existing topic.

    Each line is a record. With --input json each line is an object as printed by
    `kctl consume -o jsonl`, so consumed records can be produced again with their keys, headers and
    timestamps. They are partitioned by key, because the number of partitions may differ; see
    --keep-partitions.

    --key-format and --value-format encode JSON as Avro, Protobuf or JSON Schema with a schema of
    the registry: by default the latest version of the subject TOPIC-key or TOPIC-value. A schema
    given as @FILE is registered there.
    """
    session = session_of(ctx)
    reader, properties = split_properties(settings or [], READER_PROPERTIES)
    reader = _reader_properties(reader_config, line_reader) | reader
    null_marker = reader.get("null.marker", null_marker)
    if _is_on(reader, "parse.key"):
        key_separator = reader.get("key.separator", key_separator or "\\t")
    encodings = {
        "key": (key_format, key_schema, key_message),
        "value": (value_format, value_schema, value_message),
    }
    form = LineForm(
        encode=_encoder(session, registry, topic, encodings, dry_run=dry_run or explain),
        key_separator=None if key_separator is None else usage(parse_separator, key_separator),
        key=None if key is None else key.encode(),
        headers=tuple(usage(parse_header, header) for header in headers or []),
        header_form=_header_form(reader),
        null_marker=b"" if null_empty else None if null_marker is None else null_marker.encode(),
        json=input_form is InputForm.JSON,
        timestamp_ms=None if timestamp is None else usage(parse_time_ms, timestamp, now_ms()),
        partition=partition,
        keep_partitions=keep_partitions,
    )
    ends = None if input_form is InputForm.WHOLE else usage(parse_separator, delimiter)
    records = read_records(files or [STDIN], form, ends)
    if explain:
        _explain(session, topic, records, partitioner)
        return
    if dry_run:
        count = sum(1 for _ in records)
        session.out.note(f"{plural(count, 'valid record')} for {topic}; nothing was sent")
        return
    refuse_if_read_only(session, COLUMNS)
    delivery = Delivery(
        acks, compression, partitioner, sync, transactional_id, tuple(properties), auto_create
    )
    _send_all(session, topic, records, delivery)


def _reader_properties(file: Path | None, line_reader: str | None) -> dict[str, str]:
    """The properties of a reader's file; usage error for what kctl does not have."""
    if line_reader is not None:
        require_line_reader(line_reader)
    found = read_client_properties(file, "--reader-config") if file else {}
    if unknown := sorted(found.keys() - READER_PROPERTIES):
        known = ", ".join(sorted(READER_PROPERTIES))
        raise usage_error(f"{file}: unknown property {unknown[0]!r}", f"one of {known}")
    return found


def _is_on(reader: dict[str, str], name: str) -> bool:
    return reader.get(name, "false").strip().lower() == "true"


def _header_form(reader: dict[str, str]) -> HeaderForm | None:
    if not _is_on(reader, "parse.headers"):
        return None
    given = {
        field: usage(parse_separator, reader[name])
        for name, field in _HEADER_PROPERTIES.items()
        if name in reader
    }
    return HeaderForm(**given)


def _encoder(
    session: Session,
    registry: str | None,
    topic: str,
    encodings: dict[str, tuple[RecordFormat, str | None, str | None]],
    *,
    dry_run: bool,
) -> Callable[[TopicRecord], TopicRecord] | None:
    """Encodes records with schemas of the registry; None if none is given."""
    if not any(
        schema or message or form.value != "bytes" for form, schema, message in encodings.values()
    ):
        return None
    from kctl.streaming.record_formats import Encoding, make_encoder  # imported here: rarely needed

    wanted = {name: Encoding(*encoding) for name, encoding in encodings.items()}
    return make_encoder(session, registry, topic, wanted, dry_run=dry_run)


def _explain(
    session: Session, topic: str, records: Iterator[TopicRecord], partitioner: Partitioner
) -> None:
    """Show the partition of each record."""
    found = ask(session, lambda client: partitions_of(client, [topic]))
    num_partitions = len(found[topic])
    rows = (
        explained_row(number, record.key, *explain_partition(record, partitioner, num_partitions))
        for number, record in enumerate(records, 1)
    )
    session.out.rows(rows, EXPLAINED_COLUMNS, name="partition")


def read_records(
    names: Iterable[str], form: LineForm, delimiter: bytes | None
) -> Iterator[TopicRecord]:
    """The records of all files, each as soon as it can be read; CliError for invalid input."""
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
    if sender.outcome.timed_out:
        from kctl.streaming.waiting import unacknowledged

        raise unacknowledged(sender.outcome.timed_out, sender.timeout_s, topic)
    if sender.outcome.failed:
        raise CliError(
            f"{plural(sender.outcome.failed, 'record')} not written: {sender.outcome.first_error}"
        )


def _start(session: Session, topic: str, delivery: Delivery) -> "Sender":
    """A sender, after the cluster has answered: librdkafka itself would retry for minutes."""

    async def count(client: Client) -> int:
        if delivery.auto_create:
            return len((await known_partitions(client, [topic]))[topic] or [0])
        return len((await partitions_of(client, [topic]))[topic])

    partitions = ask(session, count)
    from kctl.streaming.config import client_properties  # imports librdkafka
    from kctl.streaming.sending import Sender
    from kctl.streaming.waiting import AcknowledgementWatch

    properties = {
        "acks": delivery.acks,
        "compression.type": delivery.compression,
        "message.timeout.ms": int(session.timeout * 1000),
        **client_properties(session, delivery.settings),
    }
    if delivery.transactional_id:
        properties["transactional.id"] = delivery.transactional_id
        properties["transaction.timeout.ms"] = max(60_000, int(session.timeout * 1000))
    return Sender(
        properties,
        delivery.partitioner,
        lambda _: partitions,
        waiting=AcknowledgementWatch(session).check,
        sync=delivery.sync,
    )


def _show(session: Session, sender: "Sender") -> None:
    written = sender.outcome.written
    if session.output is not OutputFormat.TABLE:
        rows = [
            written_row(place, part.records, part.first_offset, part.last_offset)
            for place, part in sorted(written.items())
        ]
        session.out.rows(rows, COLUMNS, name=partition_name, strict=False)
        return
    where = f"in {plural(len(written), 'partition')}"
    session.out.note(f"{plural(sender.outcome.records, 'record')} written {where}")
