"""`kctl consume`: records of topics, from where and as one likes."""

import csv
import io
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_offsets import partitions_of
from kctl.admin.positions import resolve_positions
from kctl.admin.topics import find_topics
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, lone_command
from kctl.kafka_text.console_consumer import FORMATTER_PROPERTIES, console_text
from kctl.options import Session, session_of
from kctl.output import OutputFormat
from kctl.records.filters import all_of, parse_filter
from kctl.records.format import Formatter, compile_format, format_headers
from kctl.records.json_lines import format_json_line
from kctl.records.position import END, START, STORED, Position, parse_position, parse_range
from kctl.records.record import TopicRecord
from kctl.records.times import iso_time
from kctl.streaming.choices import IsolationLevel, now_ms, split_properties, usage
from kctl.streaming.interrupts import ctrl_c_noted
from kctl.words.topics import INTERNAL_TOPICS, Regex, Selection, select

if TYPE_CHECKING:
    from kctl.streaming.reading import Reader

app = lone_command()

CSV_FIELDS = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
_KAFKA = "kafka"
_INTERNAL = ",".join(f"^{name}$" for name in sorted(INTERNAL_TOPICS))
"""The topics that a group with a pattern is not to have, as librdkafka takes them."""


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
        "kctl consume orders --from @2026-11-01T00:00Z --to -15m -o jsonl",
        "kctl consume orders -n 3 --format '%t-%p@%o %T{iso} %k=%s\\n'",
        "kctl consume orders --exit --grep k:^a --grep v:[0-9]",
        "kctl consume 'orders.*' --regex --from -15m -o jsonl --exit",
        "kctl consume orders --group billing --exit",
        "kctl consume orders -e -p 0 --format kafka --property print.key=true",
    ],
)
def consume(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", help="The topics to read.")
    ] = None,
    topic_option: Annotated[
        list[str] | None,
        typer.Option("--topic", hidden=True, help="Kafka's way of naming a topic."),
    ] = None,
    regex: Regex = False,
    include: Annotated[
        str | None,
        typer.Option(
            "--include", "--whitelist", hidden=True, help="Kafka's way of saying TOPIC --regex."
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            "--offset",
            metavar="POSITION",
            help="Where to begin: start, end, an offset, -10 (the last ten of each partition), "
            "+100, -15m, @TIME; a range as in 100:200.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="POSITION", help="Where to end; that one is not shown."),
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Same as --from start.")
    ] = False,
    exit_at_end: Annotated[
        bool, typer.Option("-e", "--exit", help="Stop at the end instead of waiting for more.")
    ] = False,
    number: Annotated[
        int | None,
        typer.Option("-n", "--max-messages", min=1, help="Stop after that many records."),
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="Stop when nothing came for that long."),
    ] = None,
    timeout_ms: Annotated[
        int | None, typer.Option(hidden=True, min=0, help="Kafka's word for --idle.")
    ] = None,
    partitions: Annotated[
        list[int] | None,
        typer.Option("-p", "--partition", min=0, help="Only this one; can be given again."),
    ] = None,
    group: Annotated[
        str | None, typer.Option("-g", "--group", help="Read as a member of this group.")
    ] = None,
    commit: Annotated[
        bool, typer.Option(help="Whether the group's offsets move with what is read.")
    ] = True,
    text_format: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--format",
            metavar="FORMAT",
            help="kcat's letters: %s value, %k key, %t topic, %p partition, %o offset, %T "
            "timestamp, %h headers, %S %K sizes; or kafka: what kafka-console-consumer prints.",
        ),
    ] = None,
    null: Annotated[str, typer.Option(help="What --format shows for null.")] = "",
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--grep",
            metavar="WHAT",
            help="Only matches: k:REGEX, v:REGEX, h:NAME=REGEX; all that are given must match.",
        ),
    ] = None,
    isolation_level: Annotated[
        IsolationLevel, typer.Option(help="Whether to read what is not committed.")
    ] = IsolationLevel.READ_COMMITTED,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            "--property",
            metavar="KEY=VALUE",
            help="A setting of librdkafka, or print.key and the like for --format kafka.",
        ),
    ] = None,
) -> None:
    """Read records from topics.

    Starts at the beginning and waits for more at the end, until Ctrl-C, --exit, --to, -n or --idle
    ends it. Prints values, a line each; -o jsonl prints all there is to a record, in the form that
    `kctl produce --input json` takes. With --regex those topics are read that are there when it
    begins; a group reads those that come later, too.
    """
    session = session_of(ctx)
    console, properties = split_properties(settings or [], FORMATTER_PROPERTIES)
    write = usage(formatter, session.output, text_format, null, console)
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
        isolation_level=isolation_level,
        settings=tuple(properties),
    )
    _check(request)
    limit = Limit(number, idle if timeout_ms is None else timeout_ms / 1000)
    try:
        with open_reader(session, request) as reader, ctrl_c_noted() as interrupted:
            _show(session, reader, limit, wanted, write, interrupted)
        if interrupted.is_set():
            raise typer.Exit(ExitStatus.INTERRUPTED)
    except KeyboardInterrupt:
        raise typer.Exit(ExitStatus.INTERRUPTED) from None
    finally:
        if text_format == _KAFKA:
            session.out.note(f"Processed a total of {limit.shown} messages")


@dataclass
class Limit:
    """When the user has seen enough."""

    number: int | None
    idle_s: float | None
    shown: int = 0

    def left(self) -> int | None:
        """How many more records to show; None for any number."""
        return None if self.number is None else self.number - self.shown


def _show(
    session: Session,
    reader: "Reader",
    limit: Limit,
    wanted: Callable[[TopicRecord], bool],
    write: Formatter,
    interrupted: Event,
) -> None:
    """Write matching records until there are enough, none came for too long, or Ctrl-C."""
    if session.output is OutputFormat.CSV:
        session.out.lines([",".join(CSV_FIELDS)])
    heard = time.monotonic()
    for batch in reader.batches(limit.left):
        chosen = [record for record in batch if wanted(record)]
        if chosen:
            session.out.chunks(map(write, chosen))
            sys.stdout.flush()  # whoever reads the pipe is waiting for it
        reader.took(batch)
        limit.shown += len(chosen)
        heard = time.monotonic() if batch else heard
        is_silent = limit.idle_s is not None and time.monotonic() - heard >= limit.idle_s
        if limit.left() == 0 or is_silent or interrupted.is_set():
            return


@contextmanager
def open_reader(session: Session, request: Request) -> Iterator["Reader"]:
    """A reader for what was asked; the cluster is known to answer before librdkafka starts."""

    async def prepare(client: Client) -> dict[str, list[int]]:
        return await partitions_of(client, await _topics(client, request.topics))

    known = ask(session, prepare)
    from kctl.streaming.config import client_properties  # librdkafka, when it is needed
    from kctl.streaming.reading import GroupReader, PartitionReader, open_consumer

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


async def _topics(client: Client, selection: Selection) -> list[str]:
    """The topics that are meant; CliError if a pattern fits none."""
    if selection.exact_names is not None:
        return selection.exact_names
    present = [topic.name for topic in await find_topics(client)]
    found = selection.pick(present)
    if not found:
        raise CliError(
            f"no topic fits {selection.patterns[0].pattern!r}",
            "kctl topics list shows those there are",
        )
    return [*found, *(name for name in selection.names if name not in found)]


def _subscription(pattern: re.Pattern[str]) -> str:
    """A pattern as librdkafka takes it: the circumflex tells it from a name."""
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
        raise CliError(f"there is no partition {min(missing)}", "kctl topics describe lists them")
    positions = [request.begin, *([request.end] if request.end else [])]
    committed = request.isolation_level is IsolationLevel.READ_COMMITTED

    async def resolve(client: Client) -> list[Offsets]:
        return await resolve_positions(client, places, positions, read_committed=committed)

    found = ask(session, resolve)
    return found[0], found[1] if request.end else None


def _bounds(
    begin: str | None, end: str | None, group: str | None
) -> tuple[Position, Position | None]:
    """From and to; without a word, a group goes on where it was and others begin at the start."""
    now = now_ms()
    if begin is None:
        first, last = STORED if group else START, None
    else:
        first, last = usage(parse_range, begin, now)
    return first, usage(parse_position, end, now) if end is not None else last


def _check(request: Request) -> None:
    if request.topics.is_everything:
        raise CliError("no topic named", "kctl topics list shows those there are", ExitStatus.USAGE)
    if not request.group:
        if STORED in (request.begin, request.end):
            raise CliError("only a group has stored offsets", "add --group", ExitStatus.USAGE)
        return
    if request.partitions or request.begin not in (START, END, STORED):
        raise CliError(
            "a group shares its partitions and goes on where it was",
            "move it with kctl groups reset-offsets, or leave out --group",
            ExitStatus.USAGE,
        )
    if request.end not in (None, END):
        raise CliError("a group can end at the end only", "use --exit", ExitStatus.USAGE)


def formatter(
    output: OutputFormat, text_format: str | None, null: str, console: dict[str, str]
) -> Formatter:
    """How records are written; ValueError if the format is none."""
    if text_format == _KAFKA:
        return lambda record: console_text(record, console)
    if text_format is not None:
        return compile_format(text_format, null.encode())
    match output:
        case OutputFormat.JSON | OutputFormat.JSONL:
            return lambda record: format_json_line(record).encode() + b"\n"
        case OutputFormat.CSV:
            return _csv_line
        case OutputFormat.NAME:
            return compile_format("%t-%p@%o\\n")
        case OutputFormat.WIDE:
            return compile_format("%t-%p@%o\\t%T{iso}\\t%k\\t%s\\n", b"-")
        case OutputFormat.YAML:
            raise ValueError("records are not shown as yaml; -o jsonl has everything")
        case _:
            return compile_format("%s\\n", null.encode())


def _csv_line(record: TopicRecord) -> bytes:
    contents = ("" if data is None else _shown(data) for data in (record.key, record.value))
    place = record.topic, record.partition, record.offset, iso_time(record.timestamp_ms)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        [*place, *contents, _shown(format_headers(record))]
    )
    return text.getvalue().encode()


def _shown(data: bytes) -> str:
    return data.decode(errors="replace")
