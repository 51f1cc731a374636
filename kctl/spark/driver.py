"""The driver of an export: check the directory, plan, run, publish, summarize."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from uuid import uuid4

from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.options import Session
from kctl.spark.compaction import rewrite_exports
from kctl.spark.decoding.columns import arrow_schema
from kctl.spark.decoding.evolution import Evolution, evolve_by_sample, is_retyped
from kctl.spark.decoding.schema import decode_struct, encode_struct, infer_struct
from kctl.spark.engine.jobs import DiskFull, JobFailed
from kctl.spark.engine.local import EngineOptions, LocalOptions
from kctl.spark.execution.progress import progress_bar
from kctl.spark.execution.runner import run_plan
from kctl.spark.planning.continuation import continue_settings
from kctl.spark.planning.plan import Gap, OffsetRange, Piece, Plan, pack
from kctl.spark.planning.selection import Selection, Source, choose_ranges
from kctl.spark.planning.settings import ContentType, TaskSettings
from kctl.spark.publishing.export_directory import ExportDirectory
from kctl.spark.publishing.spark_export_directory import open_export_directory
from kctl.spark.reading.cluster import ClusterSource
from kctl.spark.reading.log_directory import LogDirectorySource
from kctl.spark.reading.pieces import piece_tables
from kctl.spark.reading.topic_state import group_offsets, topic_state
from kctl.spark.summary import show_plan, show_result
from kctl.spark.writing.content import columns_to_read, rows_of
from kctl.spark.writing.results import TaskResult

_SAMPLED_PIECES = 8
_SAMPLED_VALUES = 1000


@dataclass(frozen=True)
class Limit:
    """`--max-undecodable`: a number of records, or a share of them."""

    number: float
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str) -> "Limit":
        """`100` or `0.1%`; a usage error if it is neither."""
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            number = -1
        if not 0 <= number < float("inf"):
            raise usage_error(f"--max-undecodable {text}: invalid", "e.g. 0, 100 or 0.1%")
        return cls(number, text.endswith("%"))

    def check(self, results: Sequence[TaskResult]) -> None:
        """JobFailed if more records were set aside."""
        counts = [count for result in results for count in result.counts]
        aside = sum(count.undecodable for count in counts)
        total = aside + sum(count.records for count in counts)
        allowed = self.number * total / 100 if self.is_percent else self.number
        if aside > allowed:
            shown = f"{self.number:g}{'%' if self.is_percent else ''}"
            raise JobFailed(
                f"{aside} of {total} records cannot be decoded, more than --max-undecodable {shown}"
            )


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
    max_undecodable: "Limit | None" = None
    evolution: Evolution = Evolution.NONE
    registry_url: str | None = None
    has_groups: bool = False
    """Whether committed offsets of groups are saved in the manifest."""
    is_quiet: bool = False
    """Whether only what needs attention is shown."""


def run_export(request: ExportRequest, session: Session, *, dry_run: bool) -> None:
    """Run the export; CliError if it fails, and then nothing is published."""
    with (
        open_export_directory(request.to, request.engine, request.settings.export_format) as target,
        _in_words(target),
    ):
        _check_target(target, request.mode)
        if dry_run:
            is_resumed = request.mode is Mode.RESUME
            plan = target.staging.plan() if is_resumed else _plan(request, target, session)
            show_plan(session, plan)
            return
        if request.evolution is Evolution.WIDEN:
            _widen(request, target, session)
            # What arrives after the rewriting must fit its schema: only fields can be added.
            request = replace(request, evolution=Evolution.ADD)
        _run(request, target, session)


def _widen(request: ExportRequest, target: ExportDirectory, session: Session) -> None:
    """Rewrite the exports if the new records need wider types; the rewriting is a commit."""
    previous = target.previous_settings()
    if request.mode not in (Mode.APPEND, Mode.INCREMENTAL) or not previous:
        return
    with target.staging.locked(), _checked(target, request.mode), _leaving_nothing(target):
        wider = TaskSettings.from_json(_plan(request, target, session).options)
        before = previous["value_schema"]
        if before and is_retyped(decode_struct(before), decode_struct(wider.value_schema)):
            session.out.note(f"rewriting the exports in {target.path} with wider types")
            if wider.value_type is ContentType.REGISTRY:
                wider = _with_registry(wider, request, session)
            rewrite_exports(target, wider)


def _run(request: ExportRequest, target: ExportDirectory, session: Session) -> None:
    started = time.monotonic()
    is_resumed = request.mode is Mode.RESUME
    is_taken_over = is_resumed or request.mode is Mode.OVERWRITE
    lock = target.staging.locked(is_taken_over=is_taken_over)
    # Clean up only under the lock: without it, the files may belong to another run.
    with lock, _checked(target, request.mode), _leaving_nothing(target):
        plan = target.staging.plan() if is_resumed else _plan(request, target, session)
        if request.mode is Mode.INCREMENTAL and not plan.tasks and target.exports():
            if not request.is_quiet:
                newest = target.export_path(target.exports()[-1])
                session.out.note(f"no new records since {newest}")
            target.clean_up()
            show_result(session, plan, [], None, time.monotonic() - started)
            return
        if not is_resumed:
            target.staging.begin(plan)
        settings = TaskSettings.from_json(plan.options)
        if settings.bootstrap_servers:
            settings = replace(settings, security=session.security)
        if settings.value_type is ContentType.REGISTRY:
            settings = _with_registry(settings, request, session)
        if is_resumed:  # a run that failed at a gap can be resumed with --on-gap skip
            settings = replace(settings, on_gap=request.settings.on_gap)
        starting = "starting" if isinstance(request.engine, LocalOptions) else "starting Spark"
        with progress_bar(plan, starting, is_enabled=not request.is_quiet) as watch:
            results = run_plan(plan, target, settings, request.engine, watch)
        if request.max_undecodable is not None:
            request.max_undecodable.check(results)
        path = target.commit(plan, results)
    seconds = time.monotonic() - started
    show_result(session, plan, results, path, seconds, is_quiet=request.is_quiet)


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
    if target.is_half_replaced:
        raise CliError(
            f"{target.path}: a run was interrupted while it replaced the exports",
            "--resume finishes it",
        )
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
        raise CliError("no topic specified", "kctl spark-export TOPIC… --to DIR", ExitStatus.USAGE)
    if request.mode is Mode.INCREMENTAL:
        selection = replace(selection, exported=target.exported_ends())
        if request.settings.until_ms is not None:
            raise usage_error(
                "--until and --incremental are mutually exclusive",
                "the next increment would begin after the records that --until leaves out",
            )
    source: Source = (
        LogDirectorySource(request.from_dirs) if request.from_dirs else ClusterSource(session)
    )
    # Before the ends are pinned, so that no group is ahead of the exported records.
    groups = group_offsets(session) if request.has_groups and not request.from_dirs else None
    gaps: list[Gap] = []
    ranges = choose_ranges(source, selection, gaps)
    _note_held_back(source, ranges, session)
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
    if settings.value_type is ContentType.REGISTRY:
        settings = _with_registry(settings, request, session)
        if pieces:
            settings = _with_table_type(settings, ranges, pieces)
    is_added = request.mode in (Mode.APPEND, Mode.INCREMENTAL)
    if is_added and (previous := target.previous_settings()) is not None:
        settings = continue_settings(settings, previous, request.evolution)
        settings = _with_new_fields(settings, pieces, request.evolution)
    elif settings.value_type is ContentType.JSON and not settings.value_schema:
        schema = infer_schema(pieces, settings)
        settings = replace(settings, value_schema=schema, is_schema_inferred=True)
    check_where(settings)
    return Plan(
        tuple(ranges),
        pack(pieces, task_bytes),
        settings.to_json(),
        uuid4().hex,
        request.mode is Mode.OVERWRITE,
        source.origin([each.topic_partition for each in ranges]),
        request.mode.name.lower(),
        tuple(gaps),
        {} if request.from_dirs else topic_state(session, {each.topic for each in ranges}, groups),
    )


def check_where(settings: TaskSettings) -> None:
    """A usage error if `--where` does not fit the columns."""
    if settings.where:
        rows_of(arrow_schema(columns_to_read(settings)).empty_table(), settings)


def _note_held_back(source: Source, ranges: Sequence[OffsetRange], session: Session) -> None:
    """Say which partitions have records behind open transactions, which are not exported."""
    for partition, offsets in source.held_back(ranges).items():
        session.out.note(
            f"{partition}: {offsets} offsets are held back by open transactions; a later "
            "--incremental exports them"
        )


def _with_registry(
    settings: TaskSettings, request: ExportRequest, session: Session
) -> TaskSettings:
    from kctl.registry.settings import required_settings

    return replace(settings, registry=required_settings(session, request.registry_url))


def _with_table_type(
    settings: TaskSettings, ranges: Sequence[OffsetRange], pieces: Sequence[Piece]
) -> TaskSettings:
    """The settings with the newest schema of the values."""
    from kctl.spark.decoding.registry_values import table_type

    if settings.registry is None:
        raise TypeError("no registry")
    topics = sorted({each.topic for each in ranges})
    found, kind = table_type(settings.registry, topics, sample_values(pieces, settings))
    return replace(settings, schema_id=found, value_schema=encode_struct(kind))


def _with_new_fields(
    settings: TaskSettings, pieces: Sequence[Piece], evolution: Evolution
) -> TaskSettings:
    """The settings with the schema that a sample of the new records adds to."""
    if evolution is Evolution.NONE or not settings.value_schema or not settings.is_schema_inferred:
        return settings
    known = decode_struct(settings.value_schema)
    found = evolve_by_sample(known, sample_values(pieces, settings), evolution)
    return replace(settings, value_schema=encode_struct(found))


def infer_schema(pieces: Sequence[Piece], settings: TaskSettings) -> str:
    """The schema of JSON values, from a sample of some pieces; empty if no struct fits all of it.

    Values that do not fit, or have other fields, are set aside as undecodable and counted.
    """
    struct = infer_struct(sample_values(pieces, settings))
    return encode_struct(struct) if struct is not None else ""


def sample_values(pieces: Sequence[Piece], settings: TaskSettings) -> list[bytes | None]:
    """Values of some pieces, taken evenly from the first chunk of each."""
    step = max(1, len(pieces) // _SAMPLED_PIECES)
    sample: list[bytes | None] = []
    for piece in pieces[::step][:_SAMPLED_PIECES]:
        for table, _ in islice(piece_tables(piece, settings, ("value",)), 1):
            stride = -(-len(table) // _SAMPLED_VALUES)
            sample += table.column("value").take(list(range(0, len(table), stride))).to_pylist()
    return sample
