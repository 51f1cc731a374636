"""Whether exports are what their manifests say, and what the source says."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.errors import CliError
from kctl.options import Session
from kctl.spark.log_source import LogSource
from kctl.spark.plan import OffsetRange
from kctl.spark.selection import Source
from kctl.spark.settings import IsolationLevel, TaskSettings
from kctl.spark.sink import file_checksum
from kctl.spark.target import Target
from kctl.spark.task import count_records
from kctl.spark.wire_source import WireSource
from kctl.tables import Column

FINDING_COLUMNS = [Column("export", right=True), Column("what"), Column("problem")]
_TASK_BYTES = 1 << 40  # one piece per segment: nothing is spread over tasks here


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be."""

    export: int
    what: str
    problem: str


def verify_target(location: str, from_dirs: tuple[Path, ...], session: Session) -> list[Finding]:
    """Look at every export of a target; CliError if there is none."""
    target = Target(location)
    if not target.exports():
        raise CliError(f"{target.path}: holds no export", "kctl spark-export TOPIC… --to DIR")
    source: Source | None = None
    servers = ""
    if from_dirs:
        source = LogSource(from_dirs)
    elif session.bootstrap_server:
        source, servers = WireSource(session), session.bootstrap_servers()
    findings: list[Finding] = []
    for number in target.exports():
        findings += verify_files(target, number)
        if source is not None:
            findings += verify_source(target, number, source, servers, session.timeout)
    return findings


def verify_files(target: Target, number: int) -> Iterator[Finding]:
    """Compare the files of one export with its manifest: presence, size, checksum, sums."""
    manifest = target.manifest(number)
    directory = target.export_path(number)
    for file in manifest["files"]:
        problem = _file_problem(directory / file["path"], file)
        if problem:
            yield Finding(number, file["path"], problem)
    known = {file["path"] for file in manifest["files"]}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_file() and name not in known and not path.name.startswith(("_", ".")):
            yield Finding(number, name, "is not in the manifest")
    in_files = sum(file["records"] for file in manifest["files"])
    counted = sum(p["records"] + p["undecodable"] for p in manifest["partitions"])
    if in_files != counted:
        yield Finding(number, "manifest", f"{counted} records by partition, {in_files} by file")


def _file_problem(path: Path, expected: dict[str, Any]) -> str:
    if not path.exists():
        return "is missing"
    size = path.stat().st_size
    if size != expected["size_bytes"]:
        return f"expected {expected['size_bytes']} bytes, found {size}"
    checksum = file_checksum(path)
    if checksum != expected["crc32c"]:
        return f"expected crc32c {expected['crc32c']}, found {checksum}"
    rows = _rows(path)
    if rows is not None and rows != expected["records"]:
        return f"expected {expected['records']} records, found {rows}"
    return ""


def _rows(path: Path) -> int | None:
    """How many rows a file says it has; None for formats that do not say."""
    if path.suffix != ".parquet":
        return None
    from pyarrow import parquet

    rows: int = parquet.read_metadata(path).num_rows
    return rows


def verify_source(
    target: Target, number: int, source: Source, bootstrap_servers: str, timeout_s: float
) -> Iterator[Finding]:
    """Count the exported ranges in the source again, and compare.

    Where retention has removed records since, nothing can be compared, which is a finding too.
    """
    manifest = target.manifest(number)
    isolation = IsolationLevel(manifest["settings"]["isolation"])
    settings = TaskSettings(
        "", bootstrap_servers=bootstrap_servers, timeout_s=timeout_s, isolation=isolation
    )
    ranges = [OffsetRange(p["topic"], p["partition"], **p["range"]) for p in manifest["partitions"]]
    available = set(source.partitions())
    there = {
        each.topic_partition: each
        for each in source.whole_ranges(
            [each.topic_partition for each in ranges if each.topic_partition in available],
            is_committed=isolation is IsolationLevel.READ_COMMITTED,
        )
    }
    for each, entry in zip(ranges, manifest["partitions"], strict=True):
        exported = entry["records"] + entry["undecodable"]
        problem = _source_problem(each, there.get(each.topic_partition), source, settings, exported)
        if problem:
            yield Finding(number, str(each.topic_partition), problem)


def _source_problem(
    exported: OffsetRange,
    there: OffsetRange | None,
    source: Source,
    settings: TaskSettings,
    records: int,
) -> str:
    if exported.is_empty:
        return ""
    if there is None:
        return "is not in the source"
    if exported.first_offset < there.first_offset:
        return (
            f"begins at offset {there.first_offset} by now, the export at {exported.first_offset}"
        )
    if exported.end_offset > there.end_offset:
        return f"ends at offset {there.end_offset}, the export at {exported.end_offset}"
    found = sum(count_records(piece, settings) for piece in source.pieces(exported, _TASK_BYTES))
    return "" if found == records else f"exported {records} records, found {found}"
