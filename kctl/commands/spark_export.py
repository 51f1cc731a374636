"""`kctl spark-export`: topics to tables, in bulk, on Spark."""

from dataclasses import asdict, replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.dump.filters import parse_times
from kctl.errors import CliError, ExitStatus
from kctl.groups import DefaultVerbGroup, command
from kctl.help import format_examples
from kctl.options import Session, session_of

if TYPE_CHECKING:
    from kctl.spark.session import SparkOptions

DEFAULT_VERB = "run"


class ExportGroup(DefaultVerbGroup):
    """A group in which a command line that begins with no verb is for `run`."""

    default_verb = DEFAULT_VERB


Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The Spark cluster; by default this machine's cores."),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A setting of Spark's; may be repeated."),
]
Packages = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP:NAME:VERSION", help="Jars that Spark gets with Maven; may be repeated."
    ),
]
Jars = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="A jar for Spark; may be repeated.")
]

app = typer.Typer(
    cls=ExportGroup,
    help="Export topics to Parquet and other tables, on Spark.\n\nWithout a verb: run.",
    epilog=format_examples(
        [
            "kctl spark-export orders 'audit.*' --to /data/orders",
            "kctl spark-export orders --from-dir /var/lib/kafka --to /data/orders",
            "kctl spark-export verify /data/orders",
        ]
    ),
    add_completion=False,
    callback=lambda: None,
)


@command(
    app,
    DEFAULT_VERB,
    examples=[
        "kctl spark-export run orders --to /data/orders",
        "kctl spark-export 'audit.*' --to /data/audit --since -1d --partition-by date",
        "kctl spark-export orders --to /data/orders --incremental",
        "kctl spark-export orders --from-dir /var/lib/kafka --to /data/orders --dry-run",
        "kctl spark-export orders --to /data/orders --value string --format jsonl",
        "kctl spark-export orders --to hdfs://names/orders --master spark://host:7077",
        "kctl spark-export --resume --to /data/orders",
    ],
)
def run(
    ctx: typer.Context,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Where to, on any file system Spark can write; an export is a directory in it.",
        ),
    ],
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC…", help="Topics, or patterns such as 'audit.*'.", show_default=False
        ),
    ] = None,
    from_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LOGDIR",
            help="Read a broker's log directory, not the cluster; may be repeated.",
        ),
    ] = None,
    export_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="parquet, jsonl, csv, orc, or avro (with Spark's module for it: --packages).",
        ),
    ] = "parquet",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="From the first record of this time on: 2026-01-31T12:00 (UTC), ms, or -15m.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Up to the first record of this time.")
    ] = None,
    offsets: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only the offsets in this JSON file."),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the last N offsets of each partition."),
    ] = None,
    isolation: Annotated[
        str,
        typer.Option(metavar="LEVEL", help="read_committed or read_uncommitted."),
    ] = "read_committed",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="topic, partition, offset, timestamp, timestamp_type, key, value, headers; also "
            "leader_epoch, producer_id.",
        ),
    ] = None,
    key: Annotated[
        str, typer.Option(metavar="TYPE", help="Keys are binary, string or json.")
    ] = "binary",
    value: Annotated[
        str, typer.Option(metavar="TYPE", help="Values are binary, string or json.")
    ] = "binary",
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Fields of JSON values, as Spark's DDL: 'id INT, name STRING'; else they are "
            "taken from a sample.",
        ),
    ] = None,
    partition_by: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Directories by topic, partition, date, hour."),
    ] = None,
    file_size: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Begin a new file at this size.")
    ] = 256,
    task_size: Annotated[
        int, typer.Option(metavar="MB", min=1, help="How much one Spark task reads.")
    ] = 96,
    append: Annotated[
        bool, typer.Option("--append", help="Add an export to those in DIR.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the exports in DIR.")
    ] = False,
    incremental: Annotated[
        bool, typer.Option("--incremental", help="Add what is new since the last export in DIR.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish the export into DIR that was broken off.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan and do nothing.")
    ] = False,
    master: Master = None,
    conf: Conf = None,
    packages: Packages = None,
    jars: Jars = None,
    py_files: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Python code for the workers; may be repeated."),
    ] = None,
) -> None:
    """Export topics to Parquet and other tables.

    What is exported is fixed before the first record is read: all offsets there are, or those
    chosen. Everything appears at once in a new directory DIR/export=N, with a _manifest.json that
    names offsets, records, files and checksums; a run that fails or is killed leaves nothing there.

    DIR may be hdfs://, s3a:// or another address: then Spark writes the files, which takes longer
    than letting the tasks do it. A DIR without one must be the same for all workers of --master.

    With --value json and no schema that fits a sample, values stay text that is known to be JSON.
    Keys and values that are not the string or JSON they are said to be go to _undecodable in the
    export, with all their columns, and are counted.
    """
    # Only here: Arrow takes longer to import than most commands run.
    from kctl.spark.request import ExportRequest, Mode, run_export
    from kctl.spark.selection import Selection, read_offsets_file
    from kctl.spark.settings import TaskSettings

    session = session_of(ctx)
    now_ms = round(time() * 1000)
    selection = Selection(
        tuple(topics or ()),
        since_ms=None if since is None else parse_times(since, now_ms).first,
        until_ms=None if until is None else parse_times(until, now_ms).first,
        last=last,
        offsets={} if offsets is None else read_offsets_file(offsets),
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
        replace(_spark_options(session, master, conf, packages, jars), py_files=_all(py_files)),
    )
    run_export(request, session, dry_run=dry_run)


@command(
    app,
    "verify",
    examples=[
        "kctl spark-export verify /data/orders",
        "kctl spark-export verify /data/orders -b broker1:9092",
        "kctl spark-export verify /data/orders --from-dir /var/lib/kafka",
    ],
)
def verify(
    ctx: typer.Context,
    directory: Annotated[str, typer.Argument(metavar="DIR", help="What was exported to.")],
    from_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LOGDIR", help="Compare with a broker's log directory; may be repeated."
        ),
    ] = None,
    master: Master = None,
    conf: Conf = None,
    packages: Packages = None,
    jars: Jars = None,
) -> int:
    """Check exports: every file against its manifest and, if named, the source.

    Files are compared by size, checksum and number of records. With a cluster (-b) or log
    directories the exported offsets are read again and counted. One line per finding; status 0 if
    there is none, 3 if there are some.
    """
    from kctl.spark.verify import FINDING_COLUMNS, verify_target  # only here: see `run`

    session = session_of(ctx)
    options = _spark_options(session, master, conf, packages, jars)
    findings = verify_target(directory, tuple(from_dir or ()), session, options)
    session.out.rows([asdict(each) for each in findings], FINDING_COLUMNS, name="what")
    if findings:
        return ExitStatus.FOUND
    session.out.note(f"{directory}: nothing to complain about")
    return ExitStatus.OK


def _spark_options(
    session: Session,
    master: str | None,
    conf: list[str] | None,
    packages: list[str] | None,
    jars: list[str] | None,
) -> "SparkOptions":
    from kctl.spark.session import DEFAULT_MASTER, SparkOptions

    return SparkOptions(
        master or DEFAULT_MASTER,
        dict(_setting(each) for each in conf or ()),
        packages=_all(packages),
        jars=_all(jars),
        is_verbose=bool(session.verbose),
    )


def _all(given: list[str] | None) -> tuple[str, ...]:
    return tuple(given or ())


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise CliError(f"--conf {text}: expected KEY=VALUE", status=ExitStatus.USAGE)
    return key, value
