"""Checks that need no source: the files of an export, and exports compared with each other."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from broker.model import TopicPartition
from kctl.spark.planning.plan import OffsetRange
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.publishing.export_directory import ExportDirectory
from kctl.spark.reading_back import UNREADABLE, stored_checksums
from kctl.spark.writing.results import UNKNOWN, ExportedFile

Manifests = Mapping[int, Mapping[str, Any]]
"""Readable manifests by the number of their export."""


@dataclass(frozen=True)
class Finding:
    """One problem of an export."""

    export: int
    what: str
    problem: str


def range_of(entry: Mapping[str, Any]) -> OffsetRange:
    """The exported offsets in a manifest's entry of one partition."""
    return OffsetRange(entry["topic"], entry["partition"], **entry["range"])


# --- the files of one export -------------------------------------------------------------------


def verify_files(target: ExportDirectory, number: int) -> Iterator[Finding]:
    """Compare the files of an export with its manifest: presence, size, checksum, records."""
    manifest = target.manifest(number)
    found = target.found_files(number)
    expected = {fields["path"]: ExportedFile(**fields) for fields in manifest["files"]}
    for path, file in expected.items():
        problem = _file_problem(found.get(path), file)
        if problem:
            yield Finding(number, path, problem)
    for path in sorted(found.keys() - expected.keys()):
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


def verify_rows(
    target: ExportDirectory, number: int, manifest: Mapping[str, Any]
) -> Iterator[Finding]:
    """Compare the values in the files with the checksums in the manifest."""
    settings = TaskSettings.from_json({"staging": "", **manifest["settings"]})
    for entry in manifest["partitions"]:
        partition = TopicPartition(entry["topic"], entry["partition"])
        if "checksums" not in entry:
            yield Finding(number, str(partition), "has no checksums: written by an older version")
            continue
        try:
            found = stored_checksums(target.export_path(number), partition, settings)
        except UNREADABLE as error:
            yield Finding(number, str(partition), f"values cannot be read: {error}")
            continue
        if found is not None and (problem := changed_columns(entry["checksums"], found)):
            yield Finding(number, str(partition), problem)


def changed_columns(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Which columns have other checksums than expected, in words; empty if none has."""
    names = [name for name in expected if name in found and expected[name] != found[name]]
    return f"values were changed in {', '.join(names)}" if names else ""


# --- the exports of a directory ----------------------------------------------------------------


def verify_continuity(manifests: Manifests) -> Iterator[Finding]:
    """Offsets that are in two exports, and offsets that a removed export contained."""
    done: dict[tuple[object, ...], list[tuple[int, OffsetRange]]] = {}
    for number, manifest in manifests.items():
        for entry in manifest["partitions"]:
            here = range_of(entry)
            # A recreated topic has the offsets of the old one again.
            log = (here.topic, here.partition, manifest.get("cluster_id"), entry.get("topic_id"))
            earlier = done.setdefault(log, [])
            what = str(here.topic_partition)
            for other, there in earlier:
                if shared := _shared(here, there):
                    yield Finding(number, what, f"{shared} are also in export {other}")
            missing = _missing(entry, here, [there for _, there in earlier])
            if missing and manifest.get("mode") == "incremental":
                yield Finding(number, what, missing)
            earlier.append((number, here))


def _shared(one: OffsetRange, other: OffsetRange) -> str:
    first = max(one.first_offset, other.first_offset)
    end = min(one.end_offset, other.end_offset)
    return f"offsets {first} to {end - 1}" if first < end else ""


def _missing(entry: Mapping[str, Any], here: OffsetRange, earlier: Iterable[OffsetRange]) -> str:
    """The offsets between an increment and the exports before it, unless its manifest names them.

    The first export of a partition has none before it: older ones may have been deleted on purpose.
    """
    ends = [each.end_offset for each in earlier]
    named = {gap["end_offset"] for gap in entry.get("gaps", ())}
    if not ends or max(ends) >= here.first_offset or here.first_offset in named:
        return ""
    return f"offsets {max(ends)} to {here.first_offset - 1} are in no export: was one removed?"
