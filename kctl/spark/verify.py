"""`spark-export verify`: compares exports with their manifests and with the source."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.cli.tables import Column
from kctl.spark.engine.local import EngineOptions
from kctl.spark.planning.origin import difference
from kctl.spark.planning.plan import OffsetRange
from kctl.spark.planning.selection import Source
from kctl.spark.planning.settings import IsolationLevel, TaskSettings
from kctl.spark.publishing.export_directory import ExportDirectory, exported_end
from kctl.spark.publishing.spark_export_directory import open_export_directory
from kctl.spark.reading.cluster import ClusterSource
from kctl.spark.reading.log_directory import LogDirectorySource
from kctl.spark.reading.pieces import count_records
from kctl.spark.writing.results import UNKNOWN, ExportedFile

FINDING_COLUMNS = [Column("export", right=True), Column("what"), Column("problem")]
_TASK_BYTES = 1 << 40  # one piece per segment, because there are no tasks


@dataclass(frozen=True)
class Finding:
    """One problem of an export."""

    export: int
    what: str
    problem: str


def verify_exports(
    location: str, from_dirs: tuple[Path, ...], session: Session, options: EngineOptions
) -> list[Finding]:
    """Verify every export in a directory; CliError if there are no exports."""
    with open_export_directory(location, options) as target:
        return _verify(target, from_dirs, session)


def _verify(
    target: ExportDirectory, from_dirs: tuple[Path, ...], session: Session
) -> list[Finding]:
    if not target.exports():
        raise CliError(f"{target.path}: contains no exports", "kctl spark-export TOPIC… --to DIR")
    source: Source | None = None
    servers = ""
    if from_dirs:
        source = LogDirectorySource(from_dirs)
    elif session.bootstrap_server:
        source, servers = ClusterSource(session), session.bootstrap_servers()
    findings: list[Finding] = []
    for number in target.exports():
        findings += verify_files(target, number)
        if source is not None:
            settings = TaskSettings(
                "",
                bootstrap_servers=servers,
                timeout_s=session.timeout,
                security=session.security if servers else None,
            )
            findings += verify_source(target, number, source, settings)
    return findings


def verify_files(target: ExportDirectory, number: int) -> Iterator[Finding]:
    """Compare the files of an export with its manifest: presence, size, checksum, records."""
    manifest = target.manifest(number)
    found = target.found_files(number)
    expected = {fields["path"]: ExportedFile(**fields) for fields in manifest["files"]}
    for path, file in expected.items():
        problem = _file_problem(found.get(path), file)
        if problem:
            yield Finding(number, path, problem)
    for path in found.keys() - expected.keys():
        yield Finding(number, path, "is not in the manifest")
    in_files = sum(file.records for file in expected.values())
    counted = sum(p["records"] + p["undecodable"] for p in manifest["partitions"])
    if in_files != counted:
        yield Finding(number, "manifest", f"{counted} records by partition, {in_files} by file")


def _file_problem(found: ExportedFile | None, expected: ExportedFile) -> str:
    if found is None:
        return "is missing"
    if found.size_bytes != expected.size_bytes:
        return f"expected {expected.size_bytes} bytes, found {found.size_bytes}"
    if found.crc32c != expected.crc32c:
        return f"expected crc32c {expected.crc32c}, found {found.crc32c}"
    if found.records not in (expected.records, UNKNOWN):
        return f"expected {expected.records} records, found {found.records}"
    return ""


def verify_source(
    target: ExportDirectory, number: int, source: Source, settings: TaskSettings
) -> Iterator[Finding]:
    """Count the records of the exported ranges in the source and compare.

    A range that retention has removed since cannot be compared, which is reported too.
    """
    manifest = target.manifest(number)
    isolation = IsolationLevel(manifest["settings"]["isolation"])
    settings = replace(settings, isolation=isolation)
    ranges = [OffsetRange(p["topic"], p["partition"], **p["range"]) for p in manifest["partitions"]]
    available = set(source.partitions())
    there = {
        each.topic_partition: each
        for each in source.whole_ranges(
            [each.topic_partition for each in ranges if each.topic_partition in available],
            is_committed=isolation is IsolationLevel.READ_COMMITTED,
        )
    }
    origin = source.origin(there)
    for each, entry in zip(ranges, manifest["partitions"], strict=True):
        if problem := difference(each.topic_partition, exported_end(manifest, entry), origin):
            yield Finding(number, str(each.topic_partition), problem)
            continue
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
        return f"now begins at offset {there.first_offset}, the export at {exported.first_offset}"
    if exported.end_offset > there.end_offset:
        return f"ends at offset {there.end_offset}, the export at {exported.end_offset}"
    found = sum(count_records(piece, settings) for piece in source.pieces(exported, _TASK_BYTES))
    return "" if found == records else f"exported {records} records, found {found}"
