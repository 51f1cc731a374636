"""`kctl spark-export run`."""

from dataclasses import replace
from pathlib import Path
from time import time
from typing import Annotated

import typer

from kctl.cli.options import session_of
from kctl.commands.spark_export.options import (
    Conf,
    Engine,
    Jars,
    Master,
    Packages,
    PyFiles,
    Workers,
    engine_options,
)
from kctl.dump.reading.filters import parse_moment


def run(
    ctx: typer.Context,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Directory to export to, on any file system that Spark can write to.",
        ),
    ],
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC…",
            help="Topic names or regular expressions, for example 'audit.*'.",
            show_default=False,
        ),
    ] = None,
    from_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LOGDIR",
            help="Read the log directory of a broker instead of the cluster. Can be repeated.",
        ),
    ] = None,
    export_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="File format: parquet, jsonl, csv, orc or avro (avro needs --packages or --jars).",
        ),
    ] = "parquet",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Start at the first record with this timestamp or later: 2026-01-31T12:00 (UTC), "
            "milliseconds, or -15m.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Stop before the first record with this timestamp or later."
        ),
    ] = None,
    offsets: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Export only the offsets in this JSON file: {"partitions": [{"topic": "orders", '
            '"partition": 0, "first_offset": 5, "end_offset": 9}]}; end_offset is optional.',
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Export only the last N offsets of each partition."),
    ] = None,
    isolation: Annotated[
        str,
        typer.Option(metavar="LEVEL", help="Isolation level: read_committed or read_uncommitted."),
    ] = "read_committed",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Columns to export: topic, partition, offset, timestamp, timestamp_type, key, "
            "value, headers (the default); also leader_epoch, producer_id.",
        ),
    ] = None,
    key: Annotated[
        str, typer.Option(metavar="TYPE", help="Decode keys as binary, string or json.")
    ] = "binary",
    value: Annotated[
        str, typer.Option(metavar="TYPE", help="Decode values as binary, string or json.")
    ] = "binary",
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the schema of JSON values in Spark's DDL: 'id INT, name STRING'. By "
            "default the schema is inferred from a sample.",
        ),
    ] = None,
    partition_by: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Write directories by topic, partition, date or hour."),
    ] = None,
    file_size: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Target size of a file.")
    ] = 256,
    task_size: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Amount of data that one Spark task reads.")
    ] = 96,
    append: Annotated[
        bool, typer.Option("--append", help="Add an export to those in DIR.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the exports in DIR.")
    ] = False,
    incremental: Annotated[
        bool,
        typer.Option(
            "--incremental", help="Export only records added since the last export in DIR."
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish an interrupted export into DIR.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan without exporting.")
    ] = False,
    engine: Engine = None,
    workers: Workers = None,
    master: Master = None,
    conf: Conf = None,
    packages: Packages = None,
    jars: Jars = None,
    py_files: PyFiles = None,
) -> None:
    """Export topics to Parquet and other formats.

    The offsets to export are fixed before the first record is read. The export appears atomically
    as a new directory DIR/export=N, with a _manifest.json that lists offsets, record counts, files
    and checksums. A run that fails or is killed publishes nothing.

    DIR can be a URL such as hdfs:// or s3a://; Spark then writes the files, which is slower than
    tasks that write them directly. A DIR without a URL must be shared by all workers of --master.

    With --value json the fields come from --schema or from a sample of the values; if no schema
    fits the sample, values are exported as text that is known to be JSON. No value is changed:
    records that are not UTF-8 or JSON, do not fit the schema, or have fields that the sample did
    not have, are kept aside in _undecodable, with topic, partition, offset and reason, and counted.
    Fields missing from a schema given with --schema are left out.

    --append and --incremental keep the schema of the previous export and refuse another --format,
    --columns, --partition-by, --key or --value. --incremental refuses a source that is not the
    exported one: another cluster, a recreated topic, a truncated log.
    """
    # Imported here because importing Arrow takes longer than most commands run.
    from kctl.spark.driver import ExportRequest, Mode, run_export
    from kctl.spark.planning.selection import Selection, read_offsets_file
    from kctl.spark.planning.settings import TaskSettings

    session = session_of(ctx)
    now_ms = round(time() * 1000)
    selection = Selection(
        tuple(topics or ()),
        since_ms=None if since is None else parse_moment(since, "--since", now_ms),
        until_ms=None if until is None else parse_moment(until, "--until", now_ms),
        last=last,
        offsets=None if offsets is None else read_offsets_file(offsets),
        is_committed=isolation == "read_committed",
    )
    settings = TaskSettings.parse(
        isolation=isolation,
        export_format=export_format,
        columns=columns,
        partition_by=partition_by,
        key_type=key,
        value_type=value,
        schema_file=schema,
    )
    request = ExportRequest(
        to,
        selection,
        replace(settings, file_bytes=file_size * 2**20, timeout_s=session.timeout),
        Mode.chosen(append=append, overwrite=overwrite, incremental=incremental, resume=resume),
        tuple(from_dir or ()),
        task_size * 2**20,
        engine_options(session, engine, workers, master, conf, packages, jars, py_files),
    )
    run_export(request, session, dry_run=dry_run)
