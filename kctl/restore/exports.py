"""The exports to restore: which records they hold, and whether they can be restored exactly."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.model import TopicPartition
from kctl.cli.errors import CliError, usage_error
from kctl.spark.decoding.columns import DEFAULT_COLUMNS
from kctl.spark.engine.local import LocalOptions
from kctl.spark.manifest_checks import range_of, verify_continuity, verify_files
from kctl.spark.planning.settings import ContentType, ExportFormat, TaskSettings
from kctl.spark.publishing.export_directory import ExportDirectory
from kctl.spark.publishing.object_store import SCHEMES, ObjectPath
from kctl.spark.publishing.spark_export_directory import is_local, open_export_directory
from kctl.spark.reading.topic_state import committed_entries

_NEEDED = tuple(name for name in DEFAULT_COLUMNS if name != "timestamp_type")
_READABLE = (ExportFormat.PARQUET, ExportFormat.ORC)


@dataclass(frozen=True)
class Part:
    """The records of one partition in one export."""

    path: Path | ObjectPath
    settings: TaskSettings
    entry: Mapping[str, Any]

    @property
    def records(self) -> int:
        """Records in the files, with those that were set aside."""
        return int(self.entry["records"] + self.entry["undecodable"])


@dataclass(frozen=True)
class SourceTopic:
    """A topic as the exports have it."""

    name: str
    source_id: str
    """Identifies the log: cluster id and topic id, as far as they are known."""
    parts: Mapping[int, Sequence[Part]]
    """By partition, in offset order."""
    state: Mapping[str, Any] | None
    """Partitions, replication factor and configs; None if the exports do not have them."""
    groups: Mapping[str, Mapping[TopicPartition, int]]
    """Committed offsets by group."""
    has_groups: bool
    """Whether an export has saved the offsets of groups, of which there may be none."""

    @property
    def num_partitions(self) -> int:
        """The number of partitions, also of those without records."""
        stored = self.state["partitions"] if self.state else 0
        return int(max(stored, max(self.parts, default=-1) + 1))

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(part.records for parts in self.parts.values() for part in parts)

    def end_offset(self, partition: int) -> int:
        """The end of the exported offsets of a partition."""
        return max(range_of(part.entry).end_offset for part in self.parts[partition])


@contextmanager
def open_exports(location: str) -> Iterator[ExportDirectory]:
    """The directory of exports; a usage error if only Spark could read it."""
    if not is_local(location) and location.partition("://")[0] not in SCHEMES:
        raise usage_error(
            f"{location}: only local directories, s3:// and gs:// can be imported",
            "copy the exports to a local directory",
        )
    with open_export_directory(location, LocalOptions()) as target:
        yield target


def read_topics(
    target: ExportDirectory, names: Sequence[str], numbers: Sequence[int]
) -> list[SourceTopic]:
    """The topics to restore; CliError if the exports are damaged or do not hold what is needed."""
    if not target.exports():
        raise CliError(f"{target.path}: contains no exports", "kctl spark-export TOPIC… --to DIR")
    chosen = list(numbers) or target.exports()
    if unknown := sorted(set(chosen) - set(target.exports())):
        raise CliError(
            f"{target.path}: has no export {unknown[0]}", f"kctl spark-export list {target.path}"
        )
    manifests = {number: target.manifest(number) for number in sorted(chosen)}
    found = sorted({e["topic"] for each in manifests.values() for e in each["partitions"]})
    if missing := sorted(set(names) - set(found)):
        raise CliError(
            f"{target.path}: does not contain topic {missing[0]}", f"it has {', '.join(found)}"
        )
    _check_sound(target, manifests)
    return [_topic(target, manifests, name) for name in names or found]


def _check_sound(target: ExportDirectory, manifests: Mapping[int, Mapping[str, Any]]) -> None:
    """CliError if files are damaged or missing, or offsets are missing or double."""
    findings = list(verify_continuity(manifests))
    for number in manifests:
        findings += verify_files(target, number)
    if findings:
        first = findings[0]
        raise CliError(
            f"{target.export_path(first.export)}: {first.what}: {first.problem}",
            f"kctl spark-export verify {target.path}",
        )


def _topic(
    target: ExportDirectory, manifests: Mapping[int, Mapping[str, Any]], name: str
) -> SourceTopic:
    parts: dict[int, list[Part]] = {}
    sources: dict[str, int] = {}
    state: Mapping[str, Any] | None = None
    groups: dict[str, dict[TopicPartition, int]] = {}
    has_groups = False
    for number, manifest in manifests.items():
        entries = [entry for entry in manifest["partitions"] if entry["topic"] == name]
        if not entries:
            continue
        settings = TaskSettings.from_json({"staging": "", **manifest["settings"]})
        path = target.export_path(number)
        if problem := _problem(settings):
            raise CliError(f"{path}: {problem}", "export the topic with the default columns")
        if not isinstance(path, Path | ObjectPath):
            raise TypeError(path)
        for entry in entries:
            sources.setdefault(f"{manifest.get('cluster_id')}/{entry.get('topic_id')}", number)
            parts.setdefault(entry["partition"], []).append(Part(path, settings, entry))
        has_groups |= manifest.get("groups") is not None
        state = (manifest.get("topics") or {}).get(name, state)
        groups |= {
            group: {each: at for each, at in offsets.items() if each.topic == name}
            for group, offsets in committed_entries(manifest).items()
        }
    if len(sources) > 1:
        raise CliError(
            f"{target.path}: the exports of {name} are of different logs (exports "
            f"{', '.join(map(str, sources.values()))}): the topic was recreated",
            "choose the exports of one log with --export N",
        )
    return SourceTopic(name, next(iter(sources)), _in_order(parts), state, groups, has_groups)


def _in_order(parts: Mapping[int, Iterable[Part]]) -> dict[int, list[Part]]:
    return {
        partition: sorted(each, key=lambda part: range_of(part.entry).first_offset)
        for partition, each in sorted(parts.items())
    }


def _problem(settings: TaskSettings) -> str:
    """Why records of an export with these settings cannot be restored; empty if they can."""
    if settings.export_format not in _READABLE:
        return f"exports in {settings.export_format} cannot be imported, only Parquet and ORC"
    known = {*settings.columns, *settings.partition_by}
    if missing := [name for name in _NEEDED if name not in known]:
        return f"has no column {missing[0]}"
    for name, kind in (("key", settings.key_type), ("value", settings.value_type)):
        is_struct = name == "value" and settings.value_schema
        if kind is ContentType.JSON and is_struct:
            return "values were decoded as JSON, so their bytes are not known"
        if kind is ContentType.REGISTRY:
            return "values were decoded by their schema, so their bytes are not known"
    return ""
