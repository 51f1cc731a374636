"""The directory that is exported to, and how an export gets there: by one rename.

    <target>/
      export=00001/            one export: data files, in directories if partitioned
        _manifest.json         what is in it, published with it
        _undecodable/          records whose key or value is not what it was said to be
      export=00002/            what `--append` or `--incremental` added
      _staging/                see staging.py

Readers of the target (`spark.read.parquet(target)`) see all exports, with their number as the
column `export`. A directory appears whole or not at all, so no reader ever sees half an export.
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
from kctl.errors import CliError
from kctl.spark.places import Place, remove_tree, write_json
from kctl.spark.plan import OffsetRange, Plan
from kctl.spark.results import ExportedFile, TaskResult, sum_counts
from kctl.spark.sink import describe_file
from kctl.spark.staging import STAGING, PlannedRun, Staging

MANIFEST = "_manifest.json"
_EXPORT = re.compile(r"export=(\d+)")
_REPLACED = "_replaced"


class Exports(ABC):
    """A directory of exports, wherever it is."""

    def __init__(self, path: Place, staging: PlannedRun) -> None:
        self.path = path
        self.staging = staging

    @property
    def has_file_per_task(self) -> bool:
        """Whether a file ends with its task, so that `--file-size` bounds what a task reads."""
        return False

    @abstractmethod
    def found_files(self, number: int) -> Mapping[str, ExportedFile]:
        """The data files of an export as they are, by their path in it."""

    def exports(self) -> list[int]:
        """The numbers of the exports that are published, rising."""
        if not self.path.is_dir():
            return []
        names = (_EXPORT.fullmatch(path.name) for path in self.path.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def export_path(self, number: int) -> Place:
        """Where an export is, or will be."""
        return self.path / _name(number)

    def manifest(self, number: int) -> dict[str, Any]:
        """What an export says of itself; CliError if it does not."""
        path = self.export_path(number) / MANIFEST
        try:
            document: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise CliError(f"{path}: cannot be read: {error}") from error
        return document

    def exported_up_to(self) -> dict[TopicPartition, int]:
        """The end offset of what is exported of each partition: where `--incremental` goes on."""
        ends: dict[TopicPartition, int] = {}
        for number in self.exports():
            for entry in self.manifest(number)["partitions"]:
                partition = TopicPartition(entry["topic"], entry["partition"])
                ends[partition] = max(ends.get(partition, 0), entry["range"]["end_offset"])
        return ends

    def is_foreign(self) -> bool:
        """Whether there is something in the directory that is not an export."""
        if not self.path.exists():
            return False
        if not self.path.is_dir():
            return True
        names = (path.name for path in self.path.iterdir())
        return any(
            not _EXPORT.fullmatch(name) and name not in (STAGING, _REPLACED) for name in names
        )

    def commit(self, plan: Plan, results: list[TaskResult]) -> Place:
        """Publish a finished run; what it replaces is removed after, not before.

        May be done again after a crash at any point: a run is published once.
        """
        published = self._published(plan.run_id)
        path = published or self._publish(plan, results)
        remove_tree(self.path / _REPLACED)
        self.staging.remove()
        return path

    def _published(self, run_id: str) -> Place | None:
        for number in self.exports():
            if self.manifest(number)["run_id"] == run_id:
                return self.export_path(number)
        return None

    def _publish(self, plan: Plan, results: list[TaskResult]) -> Place:
        staging = self.staging
        staging.out.mkdir(exist_ok=True)
        for result in results:
            staging.assemble(result)
        write_json(staging.out / MANIFEST, make_manifest(plan, results))
        if plan.is_overwrite:
            self._set_aside()
        path = self.export_path((self.exports() or [0])[-1] + 1)
        _rename(staging.out, path)
        return path

    def _set_aside(self) -> None:
        """Hide the exports that are about to be replaced."""
        aside = self.path / _REPLACED
        aside.mkdir(exist_ok=True)
        for number in self.exports():
            path = self.export_path(number)
            _rename(path, aside / path.name)

    def clean_up(self) -> None:
        """Leave nothing of a run that came to nothing."""
        self.staging.remove()
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()


class Target(Exports):
    """A directory of exports on this machine, or on one that all workers share."""

    path: Path
    staging: Staging

    def __init__(self, location: str) -> None:
        path = Path(location.removeprefix("file://")).absolute()
        super().__init__(path, Staging(path / STAGING))

    def export_path(self, number: int) -> Path:
        """Where an export is, or will be."""
        return self.path / _name(number)

    def found_files(self, number: int) -> Mapping[str, ExportedFile]:
        """The data files of an export as they are, by their path in it."""
        directory = self.export_path(number)
        return {
            (relative := str(path.relative_to(directory))): describe_file(path, relative)
            for path in sorted(directory.rglob("*"))
            if path.is_file() and not path.name.startswith(("_", "."))
        }


def _name(number: int) -> str:
    return f"export={number:05d}"


def _rename(source: Place, to: Place) -> None:
    """Both are of the same file system."""
    source.rename(to)  # type: ignore[arg-type]


def make_manifest(plan: Plan, results: list[TaskResult]) -> dict[str, Any]:
    """The manifest: per partition what was asked for and what was found, and every file."""
    counts = sum_counts(plan.ranges, results)
    return {
        "version": 1,
        "kctl": __version__,
        "run_id": plan.run_id,
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": {k: v for k, v in plan.options.items() if k not in ("staging", "timeout_s")},
        "partitions": [
            {**asdict(counts[each.topic_partition]), "range": _range(each)} for each in plan.ranges
        ],
        "files": [asdict(file) for result in results for file in result.files],
    }


def _range(offsets: OffsetRange) -> dict[str, int]:
    return {"first_offset": offsets.first_offset, "end_offset": offsets.end_offset}
