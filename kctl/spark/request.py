"""One export from beginning to end: rules of the target, plan, run, publication, summary."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from kctl.errors import CliError, ExitStatus
from kctl.options import Session
from kctl.spark.export import run_plan
from kctl.spark.jobs import DiskFull, JobFailed
from kctl.spark.log_source import LogSource
from kctl.spark.places import Place
from kctl.spark.plan import Piece, Plan, pack
from kctl.spark.progress import progress_bar
from kctl.spark.results import TaskResult, sum_counts
from kctl.spark.schema import encode_struct, infer_struct
from kctl.spark.selection import Selection, Source, choose_ranges
from kctl.spark.session import SparkOptions
from kctl.spark.settings import ContentType, TaskSettings
from kctl.spark.spark_target import open_target
from kctl.spark.target import Exports
from kctl.spark.task import piece_tables
from kctl.spark.wire_source import WireSource
from kctl.tables import Column

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
    """What is done with a target that holds something."""

    NEW = auto()
    APPEND = auto()
    OVERWRITE = auto()
    INCREMENTAL = auto()
    RESUME = auto()

    @classmethod
    def chosen(cls, **flags: bool) -> "Mode":
        """The mode of the one flag that is set; CliError if there are several."""
        given = [name for name, is_set in flags.items() if is_set]
        if len(given) > 1:
            raise CliError(
                f"--{given[0]} and --{given[1]} exclude each other", status=ExitStatus.USAGE
            )
        return cls[given[0].upper()] if given else cls.NEW


@dataclass(frozen=True)
class ExportRequest:
    """A command line, understood."""

    to: str
    selection: Selection
    settings: TaskSettings
    mode: Mode
    from_dirs: tuple[Path, ...]
    task_bytes: int
    spark: SparkOptions


def run_export(request: ExportRequest, session: Session, *, dry_run: bool) -> None:
    """Do what was asked for; CliError if it cannot be done, and then nothing is published."""
    with open_target(request.to, request.spark, request.settings.export_format) as target:
        _check_target(target, request.mode)
        if dry_run:
            is_resumed = request.mode is Mode.RESUME
            plan = target.staging.plan() if is_resumed else _plan(request, target, session)
            session.out.rows(list(_plan_rows(plan)), PLAN_COLUMNS, name="task")
            return
        _run(request, target, session)


def _run(request: ExportRequest, target: Exports, session: Session) -> None:
    started = time.monotonic()
    is_resumed = request.mode is Mode.RESUME
    is_taken_over = is_resumed or request.mode is Mode.OVERWRITE
    lock = target.staging.locked(is_taken_over=is_taken_over)
    # What a run leaves is cleaned away under its lock: what is there without it is another's.
    with _in_words(target), lock, _leaving_nothing(target):
        plan = target.staging.plan() if is_resumed else _plan(request, target, session)
        if request.mode is Mode.INCREMENTAL and not plan.tasks and target.exports():
            session.out.note(f"nothing new since {target.export_path(target.exports()[-1])}")
            target.clean_up()
            return
        if not is_resumed:
            target.staging.begin(plan)
        settings = TaskSettings.from_json(plan.options)
        if settings.bootstrap_servers:
            settings = replace(settings, security=session.security)
        with progress_bar(plan) as watch:
            results = run_plan(plan, target, settings, request.spark, watch)
        path = target.commit(plan, results)
    _summarise(session, plan, results, path, time.monotonic() - started)


@contextlib.contextmanager
def _leaving_nothing(target: Exports) -> Iterator[None]:
    """After a failure keep only what `--resume` can use: finished tasks under their plan."""
    try:
        yield
    except BaseException as error:
        is_kept = target.staging.has_finished_tasks and not isinstance(error, DiskFull)
        if not is_kept:
            target.clean_up()
        if isinstance(error, JobFailed):
            rest = "--resume does what is left" if is_kept else "nothing is left of it"
            error.hint = f"nothing was published; {rest}"
        raise


@contextlib.contextmanager
def _in_words(target: Exports) -> Iterator[None]:
    """A file system that refuses is a line that names the path."""
    try:
        yield
    except OSError as error:
        raise CliError(
            f"{error.filename or target.path}: {(error.strerror or str(error)).lower()}"
        ) from error


def _check_target(target: Exports, mode: Mode) -> None:
    """Refuse what would mix, lose or repeat data."""
    if mode is Mode.RESUME:
        if not target.staging.is_resumable:
            raise CliError(
                f"{target.path}: there is no export to resume", "leave --resume out to begin one"
            )
        return
    if target.is_foreign():
        raise CliError(
            f"{target.path}: holds something else than exports", "choose a directory of its own"
        )
    if mode is not Mode.NEW:
        return
    if target.exports():
        raise CliError(
            f"{target.path}: holds an export already",
            "--append adds another, --incremental adds what is new, --overwrite replaces it",
        )
    if target.staging.is_resumable:
        raise CliError(
            f"{target.path}: an export was broken off here",
            "--resume finishes it, --overwrite begins anew",
        )


def _plan(request: ExportRequest, target: Exports, session: Session) -> Plan:
    """Pin the offsets and cut them into tasks."""
    selection = request.selection
    if not selection.topics:
        raise CliError("no topic named", "kctl spark-export TOPIC… --to DIR", ExitStatus.USAGE)
    if request.mode is Mode.INCREMENTAL:
        selection = replace(selection, exported_up_to=target.exported_up_to())
    source: Source = LogSource(request.from_dirs) if request.from_dirs else WireSource(session)
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
    if settings.value_type is ContentType.JSON and not settings.value_schema:
        settings = replace(settings, value_schema=infer_schema(pieces, settings))
    return Plan(
        tuple(ranges),
        pack(pieces, task_bytes),
        settings.to_json(),
        uuid4().hex,
        request.mode is Mode.OVERWRITE,
    )


def infer_schema(pieces: Sequence[Piece], settings: TaskSettings) -> str:
    """The fields of JSON values as the beginnings of some pieces show them; empty if they differ.

    Later values that do not fit go aside as undecodable, and are counted.
    """
    step = max(1, len(pieces) // _SAMPLED_PIECES)
    sample: list[bytes | None] = []
    for piece in pieces[::step][:_SAMPLED_PIECES]:
        for table, _ in islice(piece_tables(piece, settings, ("value",)), 1):
            sample += table.column("value").slice(0, _SAMPLED_VALUES).to_pylist()
    struct = infer_struct(sample)
    return encode_struct(struct) if struct is not None else ""


def _plan_rows(plan: Plan) -> Iterator[Mapping[str, Any]]:
    for task in plan.tasks:
        for piece in task.pieces:
            fields = asdict(piece)
            del fields["aborted"]
            yield {"task": task.index, **fields}


def _summarise(
    session: Session, plan: Plan, results: list[TaskResult], path: Place, seconds: float
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
        session.out.note(f"{aside} records could not be decoded; they are in {path}/_undecodable")
