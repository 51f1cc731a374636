"""`spark-export verify`: compares exports with their manifests, each other, and the source."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.cli.tables import Column
from kctl.spark.engine.local import EngineOptions
from kctl.spark.manifest_checks import (
    Finding,
    Manifests,
    changed_columns,
    range_of,
    verify_continuity,
    verify_files,
    verify_rows,
)
from kctl.spark.planning.origin import Origin, difference
from kctl.spark.planning.plan import OffsetRange
from kctl.spark.planning.selection import Source
from kctl.spark.planning.settings import IsolationLevel, TaskSettings
from kctl.spark.publishing.export_directory import ExportDirectory, exported_end
from kctl.spark.publishing.spark_export_directory import open_export_directory
from kctl.spark.reading.cluster import ClusterSource
from kctl.spark.reading.log_directory import LogDirectorySource
from kctl.spark.reading.pieces import connected, count_records, piece_tables
from kctl.spark.writing.checksums import Streams, column_checksums, table_streams
from kctl.spark.writing.content import columns_to_read, rows_of, written_columns
from kctl.spark.writing.results import ExportedFile

if TYPE_CHECKING:
    from kctl.registry.settings import RegistrySettings

FINDING_COLUMNS = [Column("export", right=True), Column("what"), Column("problem")]
_TASK_BYTES = 1 << 40  # one piece per segment, because there are no tasks


def verify_exports(
    location: str,
    from_dirs: tuple[Path, ...],
    session: Session,
    options: EngineOptions,
    *,
    is_deep: bool = False,
    registry: "RegistrySettings | None" = None,
) -> list[Finding]:
    """Verify every export in a directory; CliError if there are no exports.

    `is_deep`: compare the values of all rows by the checksums in the manifest, and with a source
    those of its records too.
    """
    with open_export_directory(location, options) as target:
        return list(_verify(target, from_dirs, session, is_deep, registry))


def _verify(
    target: ExportDirectory,
    from_dirs: tuple[Path, ...],
    session: Session,
    is_deep: bool,
    registry: "RegistrySettings | None",
) -> Iterator[Finding]:
    if not target.exports():
        raise CliError(f"{target.path}: contains no exports", "kctl spark-export TOPIC… --to DIR")
    manifests: dict[int, Mapping[str, Any]] = {}
    for number in target.exports():
        try:
            manifests[number] = _checked_manifest(target, number)
        except CliError as error:
            yield Finding(number, "_manifest.json", error.message.partition(": ")[2])
    for number, manifest in manifests.items():
        yield from verify_files(target, number)
        if is_deep:
            yield from verify_rows(target, number, manifest)
    yield from verify_continuity(manifests)
    if from_dirs:
        settings = TaskSettings("", timeout_s=session.timeout, registry=registry)
        yield from verify_source(manifests, LogDirectorySource(from_dirs), settings, is_deep)
    elif session.bootstrap_server:
        settings = TaskSettings(
            "",
            bootstrap_servers=session.bootstrap_servers(),
            timeout_s=session.timeout,
            security=session.security,
            registry=registry,
        )
        with connected(settings):
            yield from verify_source(manifests, ClusterSource(session), settings, is_deep)


def _checked_manifest(target: ExportDirectory, number: int) -> dict[str, Any]:
    """The manifest; CliError if it cannot be read or lacks what every manifest has."""
    manifest = target.manifest(number)
    try:
        for file in manifest["files"]:
            ExportedFile(**file)
        for entry in manifest["partitions"]:
            range_of(entry)
            entry["records"] + entry["undecodable"]
        TaskSettings.from_json({"staging": "", **manifest["settings"]})
    except (KeyError, TypeError, ValueError) as error:
        raise CliError(f"manifest: is not valid: {error!r}") from error
    return manifest


# --- the source --------------------------------------------------------------------------------


def verify_source(
    manifests: Manifests, source: Source, settings: TaskSettings, is_deep: bool = False
) -> Iterator[Finding]:
    """Count the records of the exported ranges in the source, or compare their values.

    A range that retention has removed since cannot be compared, which is reported too.
    """
    there = _whole_ranges(manifests, source)
    origin = source.origin({each for ranges in there.values() for each in ranges})
    for number, manifest in manifests.items():
        own = TaskSettings.from_json({"staging": "", **manifest["settings"]})
        own = replace(
            own,
            bootstrap_servers=settings.bootstrap_servers,
            timeout_s=settings.timeout_s,
            security=settings.security,
            registry=settings.registry,
        )
        for entry in manifest["partitions"]:
            available = there[own.isolation].get(range_of(entry).topic_partition)
            problem = _source_problem(manifest, entry, available, origin)
            if not problem and not range_of(entry).is_empty:
                problem = _record_problem(entry, source, own, is_deep)
            if problem:
                yield Finding(number, str(range_of(entry).topic_partition), problem)


def _whole_ranges(
    manifests: Manifests, source: Source
) -> dict[IsolationLevel, dict[TopicPartition, OffsetRange]]:
    """The offsets of all exported partitions, queried once for each isolation level."""
    available = set(source.partitions())
    wanted: dict[IsolationLevel, set[TopicPartition]] = {}
    for manifest in manifests.values():
        isolation = IsolationLevel(manifest["settings"]["isolation"])
        partitions = {range_of(entry).topic_partition for entry in manifest["partitions"]}
        wanted.setdefault(isolation, set()).update(partitions & available)
    return {
        isolation: {
            each.topic_partition: each
            for each in source.whole_ranges(
                sorted(partitions), is_committed=isolation is IsolationLevel.READ_COMMITTED
            )
        }
        for isolation, partitions in wanted.items()
    }


def _source_problem(
    manifest: Mapping[str, Any],
    entry: Mapping[str, Any],
    there: OffsetRange | None,
    origin: Origin,
) -> str:
    """Why the exported range cannot be read from the source again; empty if it can."""
    exported = range_of(entry)
    end = exported_end(dict(manifest), dict(entry))
    if problem := difference(exported.topic_partition, end, origin):
        return problem
    if exported.is_empty:
        return ""
    if there is None:
        return "is not in the source"
    if exported.first_offset < there.first_offset:
        return f"now begins at offset {there.first_offset}, the export at {exported.first_offset}"
    if exported.end_offset > there.end_offset:
        return f"ends at offset {there.end_offset}, the export at {exported.end_offset}"
    return ""


def _record_problem(
    entry: Mapping[str, Any], source: Source, settings: TaskSettings, is_deep: bool
) -> str:
    exported = entry["records"] + entry["undecodable"]
    pieces = source.pieces(range_of(entry), _TASK_BYTES)
    if not is_deep and not settings.has_row_filter:
        found = sum(count_records(piece, settings) for piece in pieces)
        return "" if found == exported else f"exported {exported} records, found {found}"
    found, streams = 0, Streams()
    for piece in pieces:
        for table, _ in piece_tables(piece, settings, columns_to_read(settings)):
            good, bad = rows_of(table, settings)
            found += len(good) + len(bad)
            streams = table_streams(written_columns(good, settings), streams)
    if found != exported:
        return f"exported {exported} records, found {found}"
    problem = changed_columns(entry.get("checksums", {}), column_checksums(streams))
    return f"{problem}, compared with the source" if is_deep and problem else ""
