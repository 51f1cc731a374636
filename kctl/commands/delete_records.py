"""`kctl delete-records`: the oldest records of partitions, up to an offset or a time."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.delete_records import HIGH_WATERMARK, Deletion, delete_records
from kctl.admin.log_offsets import list_offsets, log_ends, log_starts
from kctl.admin.topics import find_topics
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, lone_command
from kctl.kafka_text.records import deletion_lines
from kctl.options import KafkaText, Session, session_of
from kctl.outcomes import HINTS
from kctl.tables import Column
from kctl.words.partitions import (
    PartitionChoice,
    no_partition_fits,
    parse_partition_words,
    parse_timestamp,
    usage_error,
)

app = lone_command()

COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("log_start_offset", "START", right=True),
    Column("log_end_offset", "END", right=True),
    Column("before", right=True),
    Column("records", right=True),
]
RESULT_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("low_watermark", "START", right=True),
    Column("error"),
]


@command(
    app,
    "delete-records",
    examples=[
        "kctl delete-records orders:0 --offset 3 --yes",
        "kctl delete-records orders --time -7d --dry-run",
        "kctl delete-records orders --all --yes",
    ],
)
def delete(
    ctx: typer.Context,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC[:PARTITION,…]…",
            help="Topics, or some of their partitions.",
            show_default=False,
        ),
    ] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", help="Delete what lies before it.", min=0)
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="WHEN", help="Delete what is older: a time, milliseconds, or -7d."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Delete all records there are now.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "--offset-json-file",
            metavar="FILE",
            help="Kafka's JSON file of partitions and offsets; - is the standard input.",
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
) -> ExitStatus | None:
    """Delete the oldest records of partitions: before an offset, before a time, or all.

    Of a time, the records before the first one that is not older are deleted; where all are
    older, all are.
    """
    session = session_of(ctx)
    if sum([offset is not None, before is not None, everything, file is not None]) != 1:
        raise usage_error("how far is not said", "say one of --offset, --time, --all and --file")
    if file is not None:
        wanted = parse_offsets_file(_read(file), str(file))
    else:
        wanted = ask(session, lambda client: _resolve(client, partitions or [], offset, before))
    plan, rows = _plan(session, wanted)
    if not rows:
        raise no_partition_fits(*(partitions or ()), str(file) if file else None)
    if not agreed(session, plan, yes=yes, dry_run=dry_run):
        return None
    done = ask(session, lambda client: delete_records(client, wanted, timeout_s=session.timeout))
    if text_format:
        session.out.lines(deletion_lines(done))
        return ExitStatus.OK
    return _show(session, done)


def parse_offsets_file(text: str, source: str) -> dict[TopicPartition, int]:
    """Partitions and offsets of Kafka's JSON; CliError says what is wrong with it."""
    hint = '{"partitions": [{"topic": "orders", "partition": 0, "offset": 5}], "version": 1}'
    try:
        document = json.loads(text)
        if document.get("version", 1) != 1:
            raise CliError(f"{source}: version {document['version']} is not known", hint)
        entries = [_entry(entry) for entry in document["partitions"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CliError(f"{source} is not Kafka's file of offsets: {error!r}", hint) from error
    wanted = dict(entries)
    if len(wanted) < len(entries):
        names = [partition for partition, _ in entries]
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise CliError(f"{source} names partitions twice: {', '.join(twice)}", "say each once")
    return wanted


def _entry(entry: Any) -> tuple[TopicPartition, int]:
    return TopicPartition(str(entry["topic"]), int(entry["partition"])), int(entry["offset"])


def _read(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text()
    except OSError as error:
        raise CliError(f"cannot read {file}: {error.strerror}", "is the path right?") from error


async def _resolve(
    client: Client, words: list[str], offset: int | None, before: str | None
) -> dict[TopicPartition, int]:
    """The offset before which to delete, per partition."""
    if not words:
        raise usage_error("no topic named", "e.g. kctl delete-records orders:0 --offset 5")
    choice = PartitionChoice(parse_partition_words(words))
    topics = await find_topics(client, [word.partition(":")[0] for word in words])
    chosen = choice.pick(TopicPartition(t.name, p.id) for t in topics for p in t.partitions)
    if before is None:
        return dict.fromkeys(chosen, HIGH_WATERMARK if offset is None else offset)
    found = await list_offsets(client, dict.fromkeys(chosen, parse_timestamp(before)))
    # No record is that young: all are older. A partition that did not answer is left alone.
    return {partition: found[partition].offset for partition in chosen if partition in found}


def _plan(
    session: Session, wanted: Mapping[TopicPartition, int]
) -> tuple[Plan, list[dict[str, object]]]:
    async def bounds(
        client: Client,
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        return await log_starts(client, wanted), await log_ends(client, wanted)

    starts, ends = ask(session, bounds)
    rows = [
        _row(partition, offset, starts.get(partition), ends.get(partition))
        for partition, offset in wanted.items()
    ]
    count = sum(row["records"] for row in rows if isinstance(row["records"], int))
    where = f"{len(rows)} partition{'s' * (len(rows) != 1)}"
    return Plan(f"Delete {count} records of {where}?", rows, COLUMNS, "topic"), rows


def _row(
    partition: TopicPartition, offset: int, start: int | None, end: int | None
) -> dict[str, object]:
    before = end if offset == HIGH_WATERMARK else offset
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "log_start_offset": start,
        "log_end_offset": end,
        "before": before,
        "records": None if before is None or start is None else max(0, before - start),
    }


def _show(session: Session, done: list[Deletion]) -> ExitStatus | None:
    failed = [deletion for deletion in done if deletion.error]
    rows = [
        {
            "topic": one.partition.topic,
            "partition": one.partition.partition,
            "low_watermark": None if one.error else one.low_watermark,
            "error": one.error.name if one.error else None,
        }
        for one in done
    ]
    columns = RESULT_COLUMNS if failed else RESULT_COLUMNS[:-1]
    session.out.rows(rows, columns, name="topic")
    if failed:
        first = failed[0]
        raise CliError(
            f"{len(failed)} of {len(done)} partitions failed; the first, {first.partition}:"
            f" {first.error.name}",
            HINTS.get(first.error, ""),
        )
    return None
