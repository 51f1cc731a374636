"""`kctl consume`: read records from topics."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.admin.positions import resolve_positions
from kctl.admin.topics import find_topics
from kctl.cli.arguments.amounts import INT32_MAX
from kctl.cli.arguments.positions import parse_position, parse_range
from kctl.cli.arguments.topics import INTERNAL_TOPICS, KAFKA_PANEL, Regex, Selection, select
from kctl.cli.command_tree import command, lone_command
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import CliError, ExitStatus, usage, usage_error
from kctl.cli.interrupts import TERMINATION, ctrl_c_noted
from kctl.cli.options import Session, session_of
from kctl.cli.output import Output, OutputFormat
from kctl.cli.times import now_ms
from kctl.commands.registry.options import KeyFormat, RegistryUrl, ValueFormat
from kctl.model.offsets import END, START, STORED, Anchor, Position
from kctl.model.records import TopicRecord
from kctl.records.filters import all_of, parse_filter
from kctl.records.format import Formatter
from kctl.records.json_lines import format_decoded, format_json_documents
from kctl.records.newest import Newest
from kctl.records.printing import KAFKA_TEXT, csv_fields, formatter
from kctl.streaming.choices import IsolationLevel, RecordFormat, split_properties
from kctl.streaming.java_classes import (
    JavaFormatter,
    internal_text,
    make_deserializer,
    parse_formatter,
)
from kctl.views.kafka_text.console_consumer import FORMATTER_PROPERTIES

if TYPE_CHECKING:
    from kctl.streaming.reading import Reader

app = lone_command()

MAX_LAST = 100_000
"""Records of --last are kept in memory: this many of every partition."""
_INTERNAL = ",".join(f"^{name}$" for name in sorted(INTERNAL_TOPICS))
"""Topics that a group subscription with a pattern excludes, as a librdkafka pattern."""


@dataclass(frozen=True)
class Request:
    """What to read."""

    topics: Selection
    partitions: frozenset[int]
    begin: Position
    end: Position | None
    group: str | None
    commit: bool
    isolation_level: IsolationLevel
    settings: tuple[str, ...]


@command(
    app,
    "consume",
    examples=[
        "kctl consume orders --from -10 --exit",
        "kctl consume orders --last 10",
        "kctl consume orders --from @2026-11-01T00:00Z --to -15m -o jsonl",
        "kctl consume orders -n 3 --format '%t-%p@%o %T{iso} %k=%s\\n'",
        "kctl consume orders --exit --grep k:^a --grep v:[0-9]",
        "kctl consume 'orders.*' --regex --from -15m -o jsonl --exit",
        "kctl consume orders --group billing --exit",
        "kctl consume orders -e -p 0 --format kafka --property print.key=true",
        "kctl consume orders --exit --value-format avro -o jsonl",
    ],
)
def consume(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC…", help="Topics to read.", show_default=False),
    ] = None,
    topic_option: Annotated[
        list[str] | None,
        typer.Option("--topic", hidden=True, help="Topic to read, as in kafka-console-consumer."),
    ] = None,
    regex: Regex = False,
    include: Annotated[
        str | None,
        typer.Option(
            "--include",
            "--whitelist",
            hidden=True,
            help="Same as TOPIC --regex, as in kafka-console-consumer.",
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            "--offset",
            metavar="POSITION",
            help="Position to start at: start, end, an offset, -10 (ten before the end of each "
            "partition), +100, -15m, @TIME; or a range such as 100:200.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="POSITION", help="Position to stop at, exclusive."),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Same as --from start.")
    ] = False,
    exit_at_end: Annotated[
        bool,
        typer.Option(
            "-e", "--exit", help="Exit at the end of the log instead of waiting for new records."
        ),
    ] = False,
    number: Annotated[
        int | None,
        typer.Option("-n", "--max-messages", min=1, help="Exit after this many records."),
    ] = None,
    last_records: Annotated[
        int | None,
        typer.Option(
            "--last",
            metavar="N",
            min=1,
            max=MAX_LAST,
            help="Print the newest N records of all partitions together, newest first, and exit.",
        ),
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="Exit when no record arrives for this long."),
    ] = None,
    timeout_ms: Annotated[
        int | None, typer.Option(hidden=True, min=0, help="Same as --idle, in milliseconds.")
    ] = None,
    partitions: Annotated[
        list[int] | None,
        typer.Option(
            "-p",
            "--partition",
            min=0,
            max=INT32_MAX,
            help="Read only this partition; can be repeated.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "-g",
            "--group",
            help="Read as a member of this consumer group; refused in a read-only context.",
        ),
    ] = None,
    commit: Annotated[bool, typer.Option(help="Commit the offsets of the group.")] = True,
    text_format: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--format",
            metavar="FORMAT",
            help="Format of a record, as in kcat: %s value, %k key, %t topic, %p partition, %o "
            "offset, %T timestamp, %h headers, %S %K sizes; or kafka, to print what "
            "kafka-console-consumer prints.",
        ),
    ] = None,
    null: Annotated[
        str, typer.Option(metavar="TEXT", help="Text that --format prints for null.")
    ] = "",
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--grep",
            metavar="WHAT",
            help="Show only records that match k:REGEX (key), v:REGEX (value) or h:NAME=REGEX "
            "(header); if repeated, all must match.",
        ),
    ] = None,
    key_format: KeyFormat = RecordFormat.BYTES,
    value_format: ValueFormat = RecordFormat.BYTES,
    registry: RegistryUrl = None,
    isolation_level: Annotated[
        IsolationLevel, typer.Option(help="Isolation level.")
    ] = IsolationLevel.READ_COMMITTED,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            "--property",
            metavar="KEY=VALUE",
            help="Set a librdkafka property, or for --format kafka a formatter property such as "
            "print.key.",
        ),
    ] = None,
    java_formatter: Annotated[
        str | None,
        typer.Option(
            "--formatter",
            metavar="CLASS",
            help="Java class of the formatter: "
            f"{', '.join(JavaFormatter)}. The last three decode internal topics.",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
    key_deserializer: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Java class of the key's deserializer, e.g. LongDeserializer: shows the number.",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
    value_deserializer: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Java class of the value's deserializer.",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
) -> None:
    """Read records from topics.

    Starts at the beginning of the log and waits for new records at the end, until stopped by
    Ctrl-C, --exit, --to, -n or --idle. Prints one value per line; -o jsonl prints complete records
    in the form that `kctl produce --input json` reads. Records of __consumer_offsets and
    __transaction_state are decoded unless --format is given. With --regex, the topics that exist
    at the start are read; a consumer group also reads matching topics that are created later.

    --key-format and --value-format decode Avro, Protobuf and JSON Schema to JSON, by the schema id
    in each record and the schemas of the registry. --grep then searches the JSON text.
    """
    session = session_of(ctx)
    console, properties = split_properties(settings or [], FORMATTER_PROPERTIES)
    if java_formatter is not None:
        text_format = _kafka_text(text_format)
    write = usage(formatter, session.out, text_format, null, console)
    if text_format is None:
        write = _decoding(session.out, write)
    elif java_formatter is not None:
        write = _java_formatter(java_formatter, write)
    decode = _decoder(session, registry, key_format, value_format)
    if key_deserializer or value_deserializer:
        decode = _deserialized(decode, key_deserializer, value_deserializer)
    wanted = all_of(usage(parse_filter, text) for text in filters or [])
    first, last = _bounds("start" if from_beginning else begin, end, group)
    request = Request(
        topics=select(
            [*(names or []), *(topic_option or [])],
            regex=regex,
            kafka_topic=include,
            exclude_internal=regex or bool(include),
        ),
        partitions=frozenset(partitions or []),
        begin=first,
        end=END if exit_at_end and last is None else last,
        group=group,
        commit=commit,
        isolation_level=_isolation_level(properties, isolation_level),
        settings=tuple(properties),
    )
    _check(request)
    if last_records is not None:
        if begin or end or from_beginning or group or number:
            raise usage_error(
                "--last cannot be combined with --from, --to, -n or --group", "omit them"
            )
        with ctrl_c_noted(*TERMINATION) as interrupted:
            _show_last(session, request, last_records, Shown(decode, wanted, write), interrupted)
        return
    limit = Limit(number, idle if timeout_ms is None else timeout_ms / 1000)
    try:
        with open_reader(session, request) as reader, ctrl_c_noted(*TERMINATION) as interrupted:
            _show(session, reader, limit, Shown(decode, wanted, write), interrupted)
        if interrupted.is_set():
            raise typer.Exit(ExitStatus.INTERRUPTED)
    except KeyboardInterrupt:
        raise typer.Exit(ExitStatus.INTERRUPTED) from None
    finally:
        if text_format == KAFKA_TEXT:
            session.out.note(f"Processed a total of {limit.shown} messages")


@dataclass(frozen=True)
class Shown:
    """How records are shown: decoded, filtered and written."""

    decode: Callable[[TopicRecord], TopicRecord]
    wanted: Callable[[TopicRecord], bool]
    write: Formatter


def _decoder(
    session: Session, registry: str | None, key: RecordFormat, value: RecordFormat
) -> Callable[[TopicRecord], TopicRecord]:
    if key is value is RecordFormat.BYTES:
        return lambda record: record
    from kctl.streaming.record_formats import make_decoder  # imported here: rarely needed

    return make_decoder(session, registry, key, value)


def _kafka_text(text_format: str | None) -> str:
    if text_format not in (None, KAFKA_TEXT):
        raise usage_error("--formatter cannot be combined with --format", "omit one of them")
    return KAFKA_TEXT


def _java_formatter(java_class: str, write: Formatter) -> Formatter:
    """How a formatter of kafka-console-consumer writes; `write` is the default one."""
    match found := parse_formatter(java_class):
        case JavaFormatter.DEFAULT:
            return write
        case JavaFormatter.NO_OP:
            return lambda _: b""
        case _:
            return lambda record: internal_text(found, record)


def _deserialized(
    decode: Callable[[TopicRecord], TopicRecord], key: str | None, value: str | None
) -> Callable[[TopicRecord], TopicRecord]:
    text = make_deserializer(key, value)
    return lambda record: text(decode(record))


def _show_last(
    session: Session,
    request: Request,
    count: int,
    shown: Shown,
    interrupted: Event,
) -> None:
    """Write the newest records of all partitions that match, newest first.

    Reads backwards, each time twice as far, in the partitions that have more: offsets of
    transaction markers and of compacted records hold no records.
    """
    from kctl.streaming.reading import PartitionReader, open_consumer  # imports librdkafka

    known = ask(session, lambda client: _known(client, request.topics))
    starts, ends = _offsets(session, replace(request, begin=START, end=END), known)
    newest = Newest(count, starts, ends or {})
    with open_consumer(_consumer_properties(session, request)) as consumer:
        while (piece := newest.next_piece()) and not interrupted.is_set():
            reader = PartitionReader(consumer, *piece)
            for batch in reader.batches(lambda: None):
                newest.add(filter(shown.wanted, map(shown.decode, batch)))
                if interrupted.is_set():
                    break
    if session.output is OutputFormat.CSV and session.out.options.headers:
        session.out.lines([",".join(csv_fields(session.out))])
    session.out.chunks(map(shown.write, newest.records()))
    if interrupted.is_set():
        raise typer.Exit(ExitStatus.INTERRUPTED)


def _decoding(out: Output, write: Formatter) -> Formatter:
    """`write` for records whose internal topics are decoded: nested in JSON, else as JSON text."""

    def decoded(record: TopicRecord) -> bytes:
        is_json = out.format in (OutputFormat.JSON, OutputFormat.JSONL)
        if is_json and (ids := _schema_ids(record)):
            return out.json_text(format_decoded(record, ids)).encode() + b"\n"
        if record.topic not in INTERNAL_TOPICS:
            return write(record)
        from kctl.dump.reading.decoders import decoded_record  # imported here: rarely needed

        documents = decoded_record(record.topic, record.key, record.value)
        if documents is None:
            return write(record)
        if is_json:
            return out.json_text(format_json_documents(record, *documents)).encode() + b"\n"
        key, value = (None if one is None else json.dumps(one).encode() for one in documents)
        return write(replace(record, key=key, value=value))

    return decoded


def _schema_ids(record: TopicRecord) -> dict[str, int | None]:
    """Schema ids of a record that was decoded with the registry; empty for other records."""
    if not hasattr(record, "value_schema_id"):
        return {}
    return {name: getattr(record, f"{name}_schema_id") for name in ("key", "value")}


@dataclass
class Limit:
    """When to stop."""

    number: int | None
    idle_s: float | None
    shown: int = 0

    def left(self) -> int | None:
        """Number of records still to show; None if unlimited."""
        return None if self.number is None else self.number - self.shown


def _show(
    session: Session,
    reader: "Reader",
    limit: Limit,
    shown: Shown,
    interrupted: Event,
) -> None:
    """Write matching records until the limit, the idle timeout or Ctrl-C."""
    if session.output is OutputFormat.CSV and session.out.options.headers:
        session.out.lines([",".join(csv_fields(session.out))])
    heard = time.monotonic()
    for batch in reader.batches(limit.left):
        chosen = list(filter(shown.wanted, map(shown.decode, batch)))
        if chosen:
            session.out.safe_chunks(map(shown.write, chosen))
            sys.stdout.flush()  # the reader of the pipe is waiting for it
        reader.took(batch)
        limit.shown += len(chosen)
        heard = time.monotonic() if batch else heard
        is_silent = limit.idle_s is not None and time.monotonic() - heard >= limit.idle_s
        if limit.left() == 0 or is_silent or interrupted.is_set():
            return


@contextmanager
def open_reader(session: Session, request: Request) -> Iterator["Reader"]:
    """A reader for the selection; the cluster must answer before librdkafka is started.

    CliError for a group in a read-only context, also without commits: a new member takes
    partitions from the others.
    """
    if request.group:
        refuse_if_read_only(session)

    known = ask(session, lambda client: _known(client, request.topics))
    from kctl.streaming.reading import (  # imports librdkafka
        GroupReader,
        PartitionReader,
        open_consumer,
    )

    properties = _consumer_properties(session, request)
    if request.group:
        with open_consumer(properties) as consumer:
            yield GroupReader(
                consumer,
                [*request.topics.names, *map(_subscription, request.topics.patterns)],
                commit=request.commit,
                exit_at_end=request.end == END,
            )
        return
    starts, ends = _offsets(session, request, known)
    with open_consumer(properties) as consumer:
        yield PartitionReader(consumer, starts, ends)


async def _known(client: Client, selection: Selection) -> dict[str, list[int]]:
    """The partitions of the selected topics."""
    return await partitions_of(client, await _topics(client, selection))


def _consumer_properties(session: Session, request: Request) -> dict[str, object]:
    """Properties of the consumer; CliError if it would commit in a read-only context."""
    # imports librdkafka
    from kctl.streaming.config import client_properties, refuse_commits_if_read_only

    properties = {
        "group.id": request.group or "kctl-consume",
        "enable.auto.commit": bool(request.group) and request.commit,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": request.isolation_level,
        "auto.offset.reset": "latest" if request.begin == END else "earliest",
        **({"topic.blacklist": _INTERNAL} if request.topics.exclude_internal else {}),
        **client_properties(session, request.settings),
    }
    refuse_commits_if_read_only(session, properties)
    return properties


def _isolation_level(settings: Sequence[str], option: IsolationLevel) -> IsolationLevel:
    """The isolation level, for which `-X isolation.level=…` takes precedence over the option.

    It also decides where the log ends for --exit and --last.
    """
    given = [text.partition("=") for text in settings]
    values = [value.strip() for key, _, value in given if key.strip() == "isolation.level"]
    if not values:
        return option
    if values[-1] not in set(IsolationLevel):
        choices = " or ".join(IsolationLevel)
        raise usage_error(f"no such isolation level: {values[-1]!r}", f"one of {choices}")
    return IsolationLevel(values[-1])


async def _topics(client: Client, selection: Selection) -> list[str]:
    """The selected topics; CliError if a pattern matches no topic."""
    if selection.exact_names is not None:
        return selection.exact_names
    present = [topic.name for topic in await find_topics(client)]
    found = selection.pick(present)
    if not found:
        raise CliError(
            f"no topic matches {selection.patterns[0].pattern!r}",
            "kctl topics list shows the topics",
        )
    return [*found, *(name for name in selection.names if name not in found)]


def _subscription(pattern: re.Pattern[str]) -> str:
    """A pattern for librdkafka, which tells it from a name by the leading circumflex."""
    return f"^({pattern.pattern})$"


Offsets = dict[TopicPartition, int]


def _offsets(
    session: Session, request: Request, known: dict[str, list[int]]
) -> tuple[Offsets, Offsets | None]:
    places = [
        TopicPartition(topic, partition)
        for topic, partitions in known.items()
        for partition in partitions
        if partition in request.partitions or not request.partitions
    ]
    missing = request.partitions - {place.partition for place in places}
    if missing:
        raise CliError(
            f"there is no partition {min(missing)}", "kctl topics describe lists the partitions"
        )
    positions = [request.begin, *([request.end] if request.end else [])]
    committed = request.isolation_level is IsolationLevel.READ_COMMITTED

    async def resolve(client: Client) -> list[Offsets]:
        return await resolve_positions(
            client, places, positions, read_committed=committed, skip_unanswered=True
        )

    found = ask(session, resolve, partial=True)
    return found[0], found[1] if request.end else None


def _bounds(
    begin: str | None, end: str | None, group: str | None
) -> tuple[Position, Position | None]:
    """Start and end; by default a group continues at its offsets, others begin at the start."""
    now = now_ms()
    if begin is None:
        first, last = STORED if group else START, None
    else:
        first, last = usage(parse_range, begin, now)
        if last and first.anchor is last.anchor is Anchor.OFFSET and last.number < first.number:
            raise usage_error(f"--from {begin}: the end is before the start", "e.g. 5:10")
    return first, usage(parse_position, end, now) if end is not None else last


def _check(request: Request) -> None:
    if request.topics.is_everything:
        raise CliError("no topic specified", "kctl topics list shows the topics", ExitStatus.USAGE)
    if not request.group:
        if STORED in (request.begin, request.end):
            raise CliError(
                "only a consumer group has committed offsets", "add --group", ExitStatus.USAGE
            )
        return
    if request.partitions or request.begin not in (START, END, STORED):
        raise CliError(
            "a group shares its partitions and continues at its committed offsets",
            "reset its offsets with kctl groups reset-offsets, or omit --group",
            ExitStatus.USAGE,
        )
    if request.end not in (None, END):
        raise CliError(
            "a group can only stop at the end of the log", "use --exit", ExitStatus.USAGE
        )
