"""`kctl delete-records`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.delete_records import delete_records
from kctl.admin.log_offsets import list_offsets, log_ends, log_starts
from kctl.admin.topics import find_topics
from kctl.cli.arguments.amounts import INT64_MAX
from kctl.cli.arguments.files import BAD_JSON, json_reason, read_text
from kctl.cli.arguments.partitions import (
    PartitionChoice,
    no_partition_matches,
    parse_partitions,
    parse_timestamp,
)
from kctl.cli.command_tree import command, lone_command
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.tables import partition_name
from kctl.model.offsets import HIGH_WATERMARK, Deletion
from kctl.views.kafka_text.records import deletion_lines
from kctl.views.offsets import (
    DELETION_COLUMNS,
    DELETION_PLAN_COLUMNS,
    FAILED_DELETION_COLUMNS,
    deletion_plan_row,
    deletion_row,
)
from kctl.views.outcomes import HINTS
from kctl.views.quantities import plural

app = lone_command()


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
        int | None,
        typer.Option("--offset", help="Delete records before this offset.", min=0, max=INT64_MAX),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="WHEN",
            help="Delete records before this time: ISO 8601, milliseconds, or -7d.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete all records.")] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "--offset-json-file",
            metavar="FILE",
            help="JSON file of partitions and offsets; - reads from stdin.",
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
) -> ExitStatus | None:
    """Delete the records before an offset or a time, or all records.

    With a time, everything before the first record at or after that time is deleted; if all records
    are older, all are deleted.
    """
    session = session_of(ctx)
    if sum([offset is not None, before is not None, everything, file is not None]) != 1:
        raise usage_error(
            "no offset or time specified", "use one of --offset, --time, --all and --file"
        )
    if file is not None:
        wanted = parse_offsets_file(read_text(file), str(file))
    else:
        wanted = ask(session, lambda client: _resolve(client, partitions or [], offset, before))
    plan, rows = _plan(session, wanted)
    if not rows:
        raise no_partition_matches(*(partitions or ()), str(file) if file else None)
    if not text_format:
        _refuse_beyond_end(rows)
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return None
    done = ask(
        session,
        lambda client: delete_records(client, wanted, timeout_s=session.timeout),
        check="kctl offsets --time earliest",
    )
    if text_format:
        session.out.lines(deletion_lines(done))
        return ExitStatus.OK
    return _show(session, done)


def parse_offsets_file(text: str, source: str) -> dict[TopicPartition, int]:
    """Parse Kafka's JSON file of offsets; CliError if it is malformed."""
    hint = '{"partitions": [{"topic": "orders", "partition": 0, "offset": 5}], "version": 1}'
    try:
        document = json.loads(text)
        if document.get("version", 1) != 1:
            raise CliError(f"{source}: version {document['version']} is not supported", hint)
        entries = [_entry(entry) for entry in document["partitions"]]
    except BAD_JSON as error:
        message = f"{source} is not a JSON file of offsets: {json_reason(error)}"
        raise CliError(message, hint) from error
    wanted = dict(entries)
    if len(wanted) < len(entries):
        names = [partition for partition, _ in entries]
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise CliError(
            f"{source} lists partitions twice: {', '.join(twice)}", "list each partition once"
        )
    return wanted


def _entry(entry: Any) -> tuple[TopicPartition, int]:
    return TopicPartition(str(entry["topic"]), int(entry["partition"])), int(entry["offset"])


async def _resolve(
    client: Client, words: list[str], offset: int | None, before: str | None
) -> dict[TopicPartition, int]:
    """The offset before which to delete, for each partition."""
    if not words:
        raise usage_error("no topic specified", "e.g. kctl delete-records orders:0 --offset 5")
    choice = PartitionChoice(parse_partitions(words))
    topics = await find_topics(client, [word.partition(":")[0] for word in words])
    chosen = choice.pick(TopicPartition(t.name, p.id) for t in topics for p in t.partitions)
    if before is None:
        return dict.fromkeys(chosen, HIGH_WATERMARK if offset is None else offset)
    found = await list_offsets(client, dict.fromkeys(chosen, parse_timestamp(before)))
    # -1: all records are older. Partitions without an answer are left out.
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
        deletion_plan_row(partition, offset, starts.get(partition), ends.get(partition))
        for partition, offset in wanted.items()
    ]
    count = sum(row["records"] for row in rows if isinstance(row["records"], int))
    question = f"Delete {count} records of {plural(len(rows), 'partition')}?"
    results = FAILED_DELETION_COLUMNS
    return Plan(question, rows, DELETION_PLAN_COLUMNS, partition_name, results), rows


def _refuse_beyond_end(rows: Sequence[Mapping[str, object]]) -> None:
    """CliError if an offset is after the high watermark, before anything is deleted."""
    for row in rows:
        before, end = row["before"], row["log_end_offset"]
        if isinstance(before, int) and isinstance(end, int) and before > end:
            raise CliError(
                f"{row['topic']}-{row['partition']}: offset {before} is beyond the log end {end}"
                " (OFFSET_OUT_OF_RANGE)",
                "nothing was deleted; --all deletes all records",
            )


def _show(session: Session, done: list[Deletion]) -> ExitStatus | None:
    failed = [deletion for deletion in done if deletion.error]
    has_error = failed or session.out.options.columns
    columns = FAILED_DELETION_COLUMNS if has_error else DELETION_COLUMNS
    session.out.rows(map(deletion_row, done), columns, name=partition_name, strict=False)
    if failed:
        first = failed[0]
        raise CliError(
            f"{len(failed)} of {len(done)} partitions failed; the first, {first.partition}:"
            f" {first.error.name}",
            HINTS.get(first.error, ""),
        )
    return None
