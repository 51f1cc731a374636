"""The export directory. An export is published by one rename.

    <target>/
      export=00001/            one export: data files, in directories if partitioned
        _manifest.json         offsets, record counts, files and checksums
        _undecodable/          records that could not be decoded
      export=00002/            added by `--append` or `--incremental`
      _staging/                see staging.py

Readers (`spark.read.parquet(directory)`) see all exports, with their number as the column `export`.
A directory appears atomically, so no reader sees a partial export.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from broker.model import TopicPartition
from kctl import __version__
from kctl.cli.errors import CliError
from kctl.spark.planning.origin import ExportedEnd
from kctl.spark.planning.plan import OffsetRange, Plan
from kctl.spark.publishing.paths import AnyPath, remove_tree, write_json
from kctl.spark.publishing.staging import STAGING, PlannedRun, Staging
from kctl.spark.writing.content import UNDECODABLE
from kctl.spark.writing.output import describe_file
from kctl.spark.writing.results import ExportedFile, PartitionCount, TaskResult, sum_counts

MANIFEST = "_manifest.json"
_EXPORT = re.compile(r"export=(\d+)")
_REPLACED = "_replaced"
_IGNORED = (".", "_SUCCESS")
"""Beginnings of names that readers ignore: .DS_Store, and the marker of Hadoop's jobs."""


class ExportDirectory(ABC):
    """A directory of exports on any file system."""

    def __init__(self, path: AnyPath, staging: PlannedRun) -> None:
        self.path = path
        self.staging = staging

    @property
    def has_file_per_task(self) -> bool:
        """Whether each task writes one file, so that `--file-size` limits what a task reads."""
        return False

    @abstractmethod
    def found_files(self, number: int) -> Mapping[str, ExportedFile]:
        """The data files of an export, by relative path."""

    def exports(self) -> list[int]:
        """The numbers of the published exports, ascending."""
        if not self.path.is_dir():
            return []
        names = (_EXPORT.fullmatch(path.name) for path in self.path.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def export_path(self, number: int) -> AnyPath:
        """The path of an export, existing or not."""
        return self.path / export_name(number)

    def manifest(self, number: int) -> dict[str, Any]:
        """The manifest of an export; CliError if it cannot be read."""
        path = self.export_path(number) / MANIFEST
        try:
            document: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise CliError(f"{path}: cannot be read: {error}") from error
        return document

    def exported_ends(self) -> dict[TopicPartition, ExportedEnd]:
        """Where the exports of each partition end: `--incremental` continues there."""
        ends: dict[TopicPartition, ExportedEnd] = {}
        for number in self.exports():
            manifest = self.manifest(number)
            for entry in manifest["partitions"]:
                end = exported_end(manifest, entry)
                known = ends.get(partition := TopicPartition(entry["topic"], entry["partition"]))
                is_other = known is None or not known.is_same_log(end)
                if known is None or is_other or known.end_offset <= end.end_offset:
                    ends[partition] = end
        return ends

    def previous_settings(self) -> dict[str, Any] | None:
        """The task settings of the newest export that contains records; None without any.

        An export without records has no meaningful schema.
        """
        for number in reversed(self.exports()):
            manifest = self.manifest(number)
            if any(file["records"] for file in manifest["files"]):
                settings: dict[str, Any] = manifest["settings"]
                return settings
        return None

    def is_foreign(self) -> bool:
        """Whether the directory contains anything that is not an export."""
        if not self.path.exists():
            return False
        if not self.path.is_dir():
            return True
        names = (path.name for path in self.path.iterdir())
        return any(
            not _EXPORT.fullmatch(name)
            and name not in (STAGING, _REPLACED)
            and not name.startswith(_IGNORED)
            for name in names
        )

    def commit(self, plan: Plan, results: list[TaskResult]) -> AnyPath:
        """Publish a finished run; replaced exports are removed afterwards.

        Can be repeated after a crash at any point: a run is published once.
        """
        published = self._published(plan.run_id)
        path = published or self._publish(plan, results)
        remove_tree(self.path / _REPLACED)
        self.staging.remove()
        return path

    def _published(self, run_id: str) -> AnyPath | None:
        for number in self.exports():
            if self.manifest(number)["run_id"] == run_id:
                return self.export_path(number)
        return None

    def _publish(self, plan: Plan, results: list[TaskResult]) -> AnyPath:
        staging = self.staging
        staging.out.mkdir(exist_ok=True)
        for result in results:
            staging.assemble(result)
        files = [file for result in results for file in result.files]
        if all(file.path.startswith(UNDECODABLE) for file in files):
            files += staging.write_empty(plan)
        write_json(staging.out / MANIFEST, make_manifest(plan, results, files))
        if plan.is_overwrite:
            self._set_aside()
        path = self.export_path((self.exports() or [0])[-1] + 1)
        _rename(staging.out, path)
        return path

    def _set_aside(self) -> None:
        """Hide the exports to be replaced."""
        aside = self.path / _REPLACED
        aside.mkdir(exist_ok=True)
        for number in self.exports():
            path = self.export_path(number)
            _rename(path, aside / path.name)

    @property
    def is_half_replaced(self) -> bool:
        """Whether a run was killed while it replaced the exports: it must be resumed first."""
        return self.staging.is_resumable and (self.path / _REPLACED).exists()

    def clean_up(self) -> None:
        """Remove all files of a failed run."""
        self.staging.remove()
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()


class LocalExportDirectory(ExportDirectory):
    """A directory of exports on this machine or on a file system shared by all workers."""

    path: Path
    staging: Staging

    def __init__(self, location: str) -> None:
        path = Path(location.removeprefix("file://")).absolute()
        super().__init__(path, Staging(path / STAGING))

    def export_path(self, number: int) -> Path:
        """The path of an export, existing or not."""
        return self.path / export_name(number)

    def found_files(self, number: int) -> Mapping[str, ExportedFile]:
        """The data files of an export, by relative path."""
        directory = self.export_path(number)
        return {
            (relative := str(path.relative_to(directory))): describe_file(path, relative)
            for path in sorted(directory.rglob("*"))
            if path.is_file() and path.name != MANIFEST
        }


def export_name(number: int) -> str:
    """The name of the directory of an export."""
    return f"export={number:05d}"


def export_number(name: str) -> int | None:
    """The number in the name of a directory; None if it is not that of an export."""
    found = _EXPORT.fullmatch(name)
    return int(found[1]) if found else None


def _rename(source: AnyPath, to: AnyPath) -> None:
    """Rename within a file system."""
    source.rename(to)  # type: ignore[arg-type]


def make_manifest(
    plan: Plan, results: list[TaskResult], files: list[ExportedFile]
) -> dict[str, Any]:
    """The manifest: requested range, counts, checksums and gaps of each partition; every file."""
    counts = sum_counts(plan.ranges, results)
    return {
        "version": 1,
        "kctl": __version__,
        "run_id": plan.run_id,
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cluster_id": plan.origin.cluster_id,
        "mode": plan.mode,
        "settings": {k: v for k, v in plan.options.items() if k not in ("staging", "timeout_s")},
        "partitions": [
            {
                **counts[each.topic_partition].as_row(),
                "range": _range(each),
                "checksums": counts[each.topic_partition].checksums,
                "gaps": gaps_of(plan, counts[each.topic_partition]),
                **plan.origin.of(each.topic_partition),
            }
            for each in plan.ranges
        ],
        "topics": plan.state.get("topics", {}),
        "groups": plan.state.get("groups"),
        "files": [asdict(file) for file in files],
    }


def gaps_of(plan: Plan, count: PartitionCount) -> list[dict[str, Any]]:
    """Records that are in no export, although they lie before or in the range."""
    before = [
        {"first_offset": gap.first_offset, "end_offset": gap.end_offset, "reason": gap.reason}
        for gap in plan.gaps
        if gap.topic_partition == count.topic_partition
    ]
    return before + [
        {
            "first_offset": first,
            "end_offset": end,
            "reason": f"offsets {first} to {end - 1} were deleted before they were read",
        }
        for first, end in count.gaps
    ]


def exported_end(manifest: dict[str, Any], entry: dict[str, Any]) -> ExportedEnd:
    """Where one partition of an export ends; manifests of older versions do not name the log."""
    return ExportedEnd(
        entry["range"]["end_offset"],
        manifest.get("cluster_id"),
        entry.get("topic_id"),
        entry.get("leader_epoch"),
    )


def _range(offsets: OffsetRange) -> dict[str, int]:
    return {"first_offset": offsets.first_offset, "end_offset": offsets.end_offset}
