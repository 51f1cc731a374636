"""Results of an export for people (a table and a line) and for programs (one object)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from kctl.cli.options import Session
from kctl.cli.output import OutputFormat
from kctl.cli.tables import Column
from kctl.spark.planning.plan import Plan
from kctl.spark.publishing.export_directory import gaps_of
from kctl.spark.writing.results import PartitionCount, TaskResult, sum_counts
from kctl.views.styles import size_column

PLAN_COLUMNS = [
    Column("task", right=True),
    Column("topic"),
    Column("partition", right=True),
    Column("first_offset", right=True),
    Column("end_offset", right=True),
    size_column("size_bytes"),
    Column("path", wide=True),
]
SUMMARY_COLUMNS = [
    Column("topic"),
    Column("partition", right=True),
    Column("records", right=True),
    Column("first_offset", right=True),
    Column("last_offset", right=True),
    size_column("size_bytes"),
    Column("undecodable", right=True),
]
_OBJECTS = (OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.YAML)
_RESULT_COLUMNS = [Column("path"), Column("records")]


def show_plan(session: Session, plan: Plan) -> None:
    """What each task would read, and the totals."""
    rows = list(_plan_rows(plan))
    session.out.rows(rows, PLAN_COLUMNS, name="task")
    offsets = sum(each.end_offset - each.first_offset for each in plan.ranges)
    session.out.note(
        f"{len(plan.tasks)} tasks, {len(plan.ranges)} partitions, {offsets} offsets, "
        f"{plan.size_bytes / 1e6:.1f} MB"
    )


def _plan_rows(plan: Plan) -> Iterator[Mapping[str, Any]]:
    for task in plan.tasks:
        for piece in task.pieces:
            fields = asdict(piece)
            del fields["aborted"]
            yield {"task": task.index, **fields}


def show_result(
    session: Session,
    plan: Plan,
    results: list[TaskResult],
    path: object,
    seconds: float,
    *,
    is_quiet: bool = False,
) -> None:
    """The published export, whose path is given; None if there was nothing to export.

    If `is_quiet`, people see only what they may have to act on: records set aside, and gaps.
    """
    counts = sum_counts(plan.ranges, results)
    document = result_document(plan, results, counts.values(), path, seconds)
    if session.out.format in _OBJECTS:
        session.out.record(document, _RESULT_COLUMNS, name="path")
    elif session.out.format is OutputFormat.NAME:
        session.out.lines([str(path)] if path is not None else [])
    elif path is not None and not is_quiet:
        rows = [count.as_row() for count in counts.values()]
        session.out.rows(rows, SUMMARY_COLUMNS, name="topic")
    if path is not None and not is_quiet:
        _note_result(session, document)
    if path is not None:
        _note_losses(session, document)


def _note_result(session: Session, document: Mapping[str, Any]) -> None:
    files = document["files"]
    session.out.note(
        f"{document['records']} records in {files} {'file' if files == 1 else 'files'}, "
        f"{document['size_bytes'] / 1e6:.1f} MB, {document['seconds']:.1f} s: {document['path']}"
    )


def _note_losses(session: Session, document: Mapping[str, Any]) -> None:
    """Records that are not in the table."""
    path = document["path"]
    if aside := document["undecodable"]:
        session.out.note(
            f"{aside} records could not be decoded and were kept in {path}/_undecodable"
        )
    for entry in document["partitions"]:
        for gap in entry["gaps"]:
            session.out.note(f"gap in {entry['topic']}-{entry['partition']}: {gap['reason']}")


def result_document(
    plan: Plan,
    results: list[TaskResult],
    counts: Iterable[PartitionCount],
    path: object,
    seconds: float,
) -> dict[str, Any]:
    """The result as an object; `path` is null if there was nothing to export."""
    files = [file for result in results for file in result.files]
    ranges = {each.topic_partition: each for each in plan.ranges}
    totals = list(counts)
    return {
        "path": None if path is None else str(path),
        "run_id": plan.run_id,
        "mode": plan.mode,
        "records": sum(count.records for count in totals),
        "undecodable": sum(count.undecodable for count in totals),
        "files": len(files),
        "size_bytes": sum(file.size_bytes for file in files),
        "seconds": round(seconds, 3),
        "partitions": [
            {
                **count.as_row(),
                "range": {
                    "first_offset": ranges[count.topic_partition].first_offset,
                    "end_offset": ranges[count.topic_partition].end_offset,
                },
                "gaps": gaps_of(plan, count),
            }
            for count in totals
        ],
    }
