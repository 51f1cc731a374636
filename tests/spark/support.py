"""Partitions on disk, and exports read back."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from broker.records.builder import BatchSettings, build_batch
from broker.records.record import RecordTuple
from kctl.spark.execution.task import run_task
from kctl.spark.planning.plan import Plan, pack
from kctl.spark.planning.selection import Selection, choose_ranges
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.publishing.export_directory import LocalExportDirectory
from kctl.spark.reading.log_directory import LogDirectorySource

GOLDEN = Path(__file__).parents[1] / "golden"
LOGS = GOLDEN / "logs" / "magic2"
_PRINTED = re.compile(r"\| offset: (\d+) \w+: -?\d+ keySize: (-?\d+) valueSize: (-?\d+) ")


def kafka_printed(tree: str, partition: str) -> list[tuple[int, int, int]]:
    """(offset, key size, value size) of the records that kafka-dump-log printed; null is -1."""
    text = (GOLDEN / "expected" / tree / partition / "log-data.txt").read_text()
    lines = (line for line in text.split("\n") if "endTxnMarker" not in line)
    found = (_PRINTED.match(line) for line in lines)
    return [(int(m[1]), int(m[2]), int(m[3])) for m in found if m]


def write_log(directory: Path, batches: Sequence[Sequence[RecordTuple]], base: int = 0) -> Path:
    """A segment of these batches, without indexes."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base:020d}.log"
    path.write_bytes(b"".join(build_batch(list(records), BatchSettings()) for records in batches))
    return path


def make_plan(
    log_dir: Path,
    target: LocalExportDirectory,
    *topics: str,
    task_bytes: int = 1 << 30,
    settings: TaskSettings | None = None,
) -> Plan:
    """The plan for everything in these topics of a log directory."""
    source = LogDirectorySource([log_dir])
    ranges = choose_ranges(source, Selection(topics))
    pieces = [p for each in ranges if not each.is_empty for p in source.pieces(each, task_bytes)]
    fields = (settings or TaskSettings("")).to_json() | {"staging": str(target.staging.path)}
    return Plan(tuple(ranges), pack(pieces, task_bytes), fields, run_id="test")


def export_without_spark(
    log_dir: Path, target: LocalExportDirectory, *topics: str, **options: Any
) -> Plan:
    """Run the export like the command, with the tasks in this process."""
    plan = make_plan(log_dir, target, *topics, **options)
    with target.staging.locked():
        target.staging.begin(plan)
        settings = TaskSettings.from_json(plan.options)
        results = [run_task(task, settings) for task in plan.tasks]
        target.commit(plan, results)
    return plan


def exported(path: Path, topic: str | None = None) -> list[dict[str, Any]]:
    """The rows that a reader of the Parquet files sees, by topic, partition and offset."""
    table = ds.dataset(path, format="parquet", partitioning="hive").to_table()
    rows = [row for row in table.to_pylist() if topic in (None, row["topic"])]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def sizes(rows: Sequence[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """(offset, key size, value size) of rows; null is -1."""
    return [(row["offset"], _size(row["key"]), _size(row["value"])) for row in rows]


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
