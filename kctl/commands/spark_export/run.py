"""`kctl spark-export run`."""

from dataclasses import replace
from pathlib import Path
from time import time
from typing import Annotated

import typer

from kctl.cli.errors import usage_error
from kctl.cli.options import Session, session_of
from kctl.commands.spark_export.options import (
    Conf,
    Engine,
    Jars,
    Master,
    Packages,
    PyFiles,
    Workers,
    engine_options,
    export_location,
)
from kctl.dump.reading.filters import parse_moment

DEFAULT_FILE_MB = 256
DEFAULT_TASK_MB = 96
_OF_A_NEW_RUN = {
    "topics": "TOPIC",
    "from_dir": "--from-dir",
    "export_format": "--format",
    "since": "--since",
    "until": "--until",
    "offsets": "--offsets",
    "last": "--last",
    "isolation": "--isolation",
    "columns": "--columns",
    "key": "--key",
    "value": "--value",
    "schema": "--schema",
    "where": "--where",
    "sample": "--sample",
    "schema_evolution": "--schema-evolution",
    "flatten": "--flatten",
    "groups": "--groups",
    "partition_by": "--partition-by",
    "compression": "--compression",
    "file_size": "--file-size",
    "task_size": "--task-size",
}
"""Options that the plan of an interrupted run has fixed."""


def _check_combinations(
    ctx: typer.Context, session: Session, *, resume: bool, from_dir: bool, has_groups: bool
) -> None:
    """A usage error for options that would be ignored."""
    if from_dir and "bootstrap_server" in session.given:
        raise usage_error("-b and --from-dir are mutually exclusive", "omit one of them")
    if from_dir and has_groups:
        raise usage_error("--groups needs a cluster", "omit it, or --from-dir")
    if not resume:
        return
    for name, option in _OF_A_NEW_RUN.items():
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise usage_error(
                f"{option} has no effect with --resume: the interrupted run determines it",
                "omit it, or use --overwrite to start again",
            )


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
            help="Read the log directory of a broker instead of the cluster; can be repeated.",
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
            help="Only records with this timestamp or a later one: 2026-01-31T12:00 (UTC), "
            "milliseconds, or -15m.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Only records with an earlier timestamp, wherever they are."
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
    where: Annotated[
        str,
        typer.Option(
            metavar="CONDITION",
            help='Only rows that meet a condition: "partition = 3 AND value.amount > 100 AND '
            "key LIKE 'user-%'\". Also IN, BETWEEN, IS NULL, OR, NOT.",
        ),
    ] = "",
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Export a sample, for example 1% of the records; every run selects the same ones.",
        ),
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
        str,
        typer.Option(
            metavar="TYPE",
            help="Decode values as binary, string, json, or by their schema in a registry.",
        ),
    ] = "binary",
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="KCTL_SCHEMA_REGISTRY_URL",
            help="Schema registry for --value registry (default: schema.registry.url of "
            "client.properties).",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the schema of JSON values in Spark's DDL: 'id INT, name STRING'. By "
            "default the schema is inferred from a sample.",
        ),
    ] = None,
    schema_evolution: Annotated[
        str,
        typer.Option(
            metavar="none|add|widen",
            help="What later exports may change in the schema of JSON values: nothing, add fields, "
            "or also use wider numbers, which rewrites the earlier exports.",
        ),
    ] = "none",
    flatten: Annotated[
        bool,
        typer.Option("--flatten", help="Write the fields of JSON values as columns of their own."),
    ] = False,
    max_undecodable: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Fail if more records than this cannot be decoded: a number, or e.g. 0.1%.",
        ),
    ] = None,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups",
            help="Save the committed offsets of consumer groups in the manifest, for kctl import.",
        ),
    ] = False,
    partition_by: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Write directories by topic, partition, date or hour."),
    ] = None,
    compression: Annotated[
        str,
        typer.Option(
            metavar="CODEC",
            help="Compression of files: none, snappy, gzip, lz4 or zstd, with a level as in zstd:3 "
            "(default zstd:1 for Parquet, none for text).",
        ),
    ] = "",
    file_size: Annotated[
        int | None,
        typer.Option(
            metavar="MB",
            min=1,
            help="Target size of a file (default 256). A file holds at most what one task reads.",
        ),
    ] = None,
    row_group_size: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Uncompressed size of a row group.")
    ] = 16,
    task_size: Annotated[
        int | None,
        typer.Option(
            metavar="MB",
            min=1,
            help="Amount of data that one task reads (default 96, or twice --file-size).",
        ),
    ] = None,
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
    on_gap: Annotated[
        str,
        typer.Option(
            metavar="fail|skip",
            help="What to do if records were deleted before they were exported, or the topic was "
            "recreated: fail, or export the rest and record the gap in the manifest.",
        ),
    ] = "fail",
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish an interrupted export into DIR.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan without exporting.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print only errors, records set aside and gaps, and what -o json asks for.",
        ),
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
    not have, are written to _undecodable, with topic, partition, offset and reason, and counted.
    Fields missing from a schema given with --schema are left out.

    With --value registry each value is decoded by the schema whose id it carries (Avro, Protobuf,
    JSON Schema) and becomes a row of one table, whose columns are those of the newest schema:
    values of other Avro schemas are resolved to it.

    --since and --until are exact, whatever the order of the timestamps. With -o json the result is
    one object: path, run_id, records, undecodable, files, size_bytes, seconds, partitions. The exit
    status is 0 if the export was published or there was nothing new, and 1 if it failed.

    --append and --incremental keep the schema of the previous export (--schema-evolution add or
    widen lets a sample of the new records, or --schema, extend it) and refuse another --format,
    --columns, --partition-by, --key or --value. --incremental refuses a source that is not the
    exported one: another cluster, a recreated topic, a truncated log; --on-gap skip exports it.
    """
    # Imported here because importing Arrow takes longer than most commands run.
    from kctl.spark.driver import ExportRequest, Limit, Mode, run_export
    from kctl.spark.planning.selection import Selection, read_offsets_file
    from kctl.spark.planning.settings import (
        OnGap,
        TaskSettings,
        parse_evolution,
        parse_on_gap,
        parse_share,
    )

    session = session_of(ctx)
    _check_combinations(ctx, session, resume=resume, from_dir=bool(from_dir), has_groups=groups)
    now_ms = round(time() * 1000)
    since_ms = None if since is None else parse_moment(since, "--since", now_ms)
    until_ms = None if until is None else parse_moment(until, "--until", now_ms)
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise usage_error(f"--since {since} is not before --until {until}", "swap them")
    selection = Selection(
        tuple(topics or ()),
        since_ms=since_ms,
        last=last,
        offsets=None if offsets is None else read_offsets_file(offsets),
        is_committed=isolation == "read_committed",
        is_gap_skipped=on_gap == OnGap.SKIP,
    )
    settings = TaskSettings.parse(
        isolation=isolation,
        export_format=export_format,
        columns=columns,
        partition_by=partition_by,
        key_type=key,
        value_type=value,
        schema_file=schema,
        compression=compression,
        is_flat=flatten,
    )
    settings = replace(
        settings,
        since_ms=since_ms,
        until_ms=until_ms,
        where=where,
        sample=1.0 if sample is None else parse_share(sample),
        on_gap=parse_on_gap(on_gap),
        file_bytes=(file_size or DEFAULT_FILE_MB) * 2**20,
        row_group_bytes=row_group_size * 2**20,
        timeout_s=session.timeout,
    )
    if task_size is None:
        task_size = max(DEFAULT_TASK_MB, 2 * (file_size or 0))
    request = ExportRequest(
        export_location(to),
        selection,
        settings,
        Mode.chosen(append=append, overwrite=overwrite, incremental=incremental, resume=resume),
        tuple(from_dir or ()),
        task_size * 2**20,
        engine_options(session, engine, workers, master, conf, packages, jars, py_files),
        None if max_undecodable is None else Limit.parse(max_undecodable),
        parse_evolution(schema_evolution, value),
        registry,
        groups,
        quiet,
    )
    run_export(request, session, dry_run=dry_run)
