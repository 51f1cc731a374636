"""The driver of an export: check the directory, plan, run, publish, summarize."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session
from kctl.cli.tables import Column
from kctl.spark.decoding.schema import encode_struct, infer_struct
from kctl.spark.engine.jobs import DiskFull, JobFailed
from kctl.spark.engine.local import EngineOptions, LocalOptions
from kctl.spark.execution.progress import progress_bar
from kctl.spark.execution.runner import run_plan
from kctl.spark.planning.continuation import continue_settings
from kctl.spark.planning.plan import Piece, Plan, pack
from kctl.spark.planning.selection import Selection, Source, choose_ranges
from kctl.spark.planning.settings import ContentType, TaskSettings
from kctl.spark.publishing.export_directory import ExportDirectory
from kctl.spark.publishing.paths import AnyPath
from kctl.spark.publishing.spark_export_directory import open_export_directory
from kctl.spark.reading.cluster import ClusterSource
from kctl.spark.reading.log_directory import LogDirectorySource
from kctl.spark.reading.pieces import piece_tables
from kctl.spark.writing.results import TaskResult, sum_counts

PLAN_COLUMNS = [
    Column("task", right=True),
    Column("topic"),
    Column("partition", right=True),
    Column("first_offset", right=True),
    Column("end_offset", right=True),
    Column("size_bytes", "BYTES", right=True),
    Column("path", wide=True),
]
SUMMARY_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("records", right=True),
    Column("first_offset", right=True),
    Column("last_offset", right=True),
    Column("size_bytes", "BYTES", right=True),
    Column("undecodable", right=True),
]

_SAMPLED_PIECES = 8
_SAMPLED_VALUES = 1000


class Mode(Enum):
    """What to do with a directory that contains exports."""

    NEW = auto()
    APPEND = auto()
    OVERWRITE = auto()
    INCREMENTAL = auto()
    RESUME = auto()

    @classmethod
    def chosen(cls, **flags: bool) -> "Mode":
        """The mode of the flag that is set; CliError if several are set."""
        given = [name for name, is_set in flags.items() if is_set]
        if len(given) > 1:
            raise CliError(
                f"--{given[0]} and --{given[1]} are mutually exclusive", status=ExitStatus.USAGE
            )
        return cls[given[0].upper()] if given else cls.NEW


@dataclass(frozen=True)
class ExportRequest:
    """A parsed command line."""

    to: str
    selection: Selection
    settings: TaskSettings
    mode: Mode
    from_dirs: tuple[Path, ...]
    task_bytes: int
    engine: EngineOptions


def run_export(request: ExportRequest, session: Session, *, dry_run: bool) -> None:
    """Run the export; CliError if it fails, and then nothing is published."""
    with open_export_directory(
        request.to, request.engine, request.settings.export_format
    ) as target:
        _check_target(target, request.mode)
        if dry_run:
            is_resumed = request.mode is Mode.RESUME
            plan = target.staging.plan() if is_resumed else _plan(request, target, session)
            session.out.rows(list(_plan_rows(plan)), PLAN_COLUMNS, name="task")
            return
        _run(request, target, session)


def _run(request: ExportRequest, target: ExportDirectory, session: Session) -> None:
    started = time.monotonic()
    is_resumed = request.mode is Mode.RESUME
    is_taken_over = is_resumed or request.mode is Mode.OVERWRITE
    lock = target.staging.locked(is_taken_over=is_taken_over)
    # Clean up only under the lock: without it, the files may belong to another run.
    with _in_words(target), lock, _checked(target, request.mode), _leaving_nothing(target):
        plan = target.staging.plan() if is_resumed else _plan(request, target, session)
        if request.mode is Mode.INCREMENTAL and not plan.tasks and target.exports():
            session.out.note(f"no new records since {target.export_path(target.exports()[-1])}")
            target.clean_up()
            return
        if not is_resumed:
            target.staging.begin(plan)
        settings = TaskSettings.from_json(plan.options)
        if settings.bootstrap_servers:
            settings = replace(settings, security=session.security)
        starting = "starting" if isinstance(request.engine, LocalOptions) else "starting Spark"
        with progress_bar(plan, starting) as watch:
            results = run_plan(plan, target, settings, request.engine, watch)
        path = target.commit(plan, results)
    _summarise(session, plan, results, path, time.monotonic() - started)


@contextlib.contextmanager
def _checked(target: ExportDirectory, mode: Mode) -> Iterator[None]:
    """Check the directory again under the lock: another run may have published in between."""
    _check_target(target, mode)
    yield


@contextlib.contextmanager
def _leaving_nothing(target: ExportDirectory) -> Iterator[None]:
    """After a failure keep finished tasks for `--resume`, and remove everything else."""
    try:
        yield
    except BaseException as error:
        is_kept = target.staging.has_finished_tasks and not isinstance(error, DiskFull)
        if not is_kept:
            target.clean_up()
        if isinstance(error, JobFailed):
            rest = "--resume continues it" if is_kept else "no files were left behind"
            error.hint = f"nothing was published; {rest}"
        raise


@contextlib.contextmanager
def _in_words(target: ExportDirectory) -> Iterator[None]:
    """Turn an OSError into a CliError that names the path."""
    try:
        yield
    except OSError as error:
        raise CliError(
            f"{error.filename or target.path}: {(error.strerror or str(error)).lower()}"
        ) from error


def _check_target(target: ExportDirectory, mode: Mode) -> None:
    """Refuse to mix, lose or repeat data."""
    if mode is Mode.RESUME:
        if not target.staging.is_resumable:
            raise CliError(f"{target.path}: no export to resume", "omit --resume to start one")
        return
    if target.is_foreign():
        raise CliError(
            f"{target.path}: contains files that are not exports", "use a separate directory"
        )
    if mode is not Mode.NEW:
        return
    if target.exports():
        raise CliError(
            f"{target.path}: already contains an export",
            "--append adds another, --incremental adds new records, --overwrite replaces it",
        )
    if target.staging.is_resumable:
        raise CliError(
            f"{target.path}: contains an interrupted export",
            "--resume finishes it, --overwrite starts again",
        )


def _plan(request: ExportRequest, target: ExportDirectory, session: Session) -> Plan:
    """Pin the offsets and split them into tasks."""
    selection = request.selection
    if not selection.topics:
        raise CliError("no topic given", "kctl spark-export TOPIC… --to DIR", ExitStatus.USAGE)
    if request.mode is Mode.INCREMENTAL:
        selection = replace(selection, exported=target.exported_ends())
    source: Source = (
        LogDirectorySource(request.from_dirs) if request.from_dirs else ClusterSource(session)
    )
    ranges = choose_ranges(source, selection)
    task_bytes = request.task_bytes
    if target.has_file_per_task:
        task_bytes = min(task_bytes, request.settings.file_bytes)
    pieces = [
        piece for each in ranges if not each.is_empty for piece in source.pieces(each, task_bytes)
    ]
    settings = replace(
        request.settings,
        staging=str(target.staging.path),
        bootstrap_servers="" if request.from_dirs else session.bootstrap_servers(),
        security=None if request.from_dirs else session.security,
    )
    is_added = request.mode in (Mode.APPEND, Mode.INCREMENTAL)
    if is_added and (previous := target.previous_settings()) is not None:
        settings = continue_settings(settings, previous)
    elif settings.value_type is ContentType.JSON and not settings.value_schema:
        schema = infer_schema(pieces, settings)
        settings = replace(settings, value_schema=schema, is_schema_inferred=True)
    return Plan(
        tuple(ranges),
        pack(pieces, task_bytes),
        settings.to_json(),
        uuid4().hex,
        request.mode is Mode.OVERWRITE,
        source.origin([each.topic_partition for each in ranges]),
    )


def infer_schema(pieces: Sequence[Piece], settings: TaskSettings) -> str:
    """The schema of JSON values, from a sample of some pieces; empty if no struct fits all of it.

    From each piece the first chunk is read and values are taken evenly from it. Values that do not
    fit, or have other fields, are kept aside as undecodable and counted.
    """
    step = max(1, len(pieces) // _SAMPLED_PIECES)
    sample: list[bytes | None] = []
    for piece in pieces[::step][:_SAMPLED_PIECES]:
        for table, _ in islice(piece_tables(piece, settings, ("value",)), 1):
            stride = -(-len(table) // _SAMPLED_VALUES)
            sample += table.column("value").take(list(range(0, len(table), stride))).to_pylist()
    struct = infer_struct(sample)
    return encode_struct(struct) if struct is not None else ""


def _plan_rows(plan: Plan) -> Iterator[Mapping[str, Any]]:
    for task in plan.tasks:
        for piece in task.pieces:
            fields = asdict(piece)
            del fields["aborted"]
            yield {"task": task.index, **fields}


def _summarise(
    session: Session, plan: Plan, results: list[TaskResult], path: AnyPath, seconds: float
) -> None:
    counts = sum_counts(plan.ranges, results)
    session.out.rows([asdict(count) for count in counts.values()], SUMMARY_COLUMNS, name="topic")
    records = sum(count.records for count in counts.values())
    files = [file for result in results for file in result.files]
    written = sum(file.size_bytes for file in files)
    aside = sum(count.undecodable for count in counts.values())
    session.out.note(
        f"{records} records in {len(files)} files, {written / 1e6:.1f} MB, {seconds:.1f} s: {path}"
    )
    if aside:
        session.out.note(
            f"{aside} records could not be decoded and were kept in {path}/_undecodable"
        )
