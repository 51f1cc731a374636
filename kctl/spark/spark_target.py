"""A target that Spark writes to: any of its file systems, and formats that only it can write.

The directory looks as in target.py, and an export appears in it the same way: by one rename, of a
directory that Spark's own commit has filled. (On an object store a rename is a copy, file by file;
whoever reads there at that moment should ask for `_manifest.json`, without which an export is not
complete.)
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kctl.errors import CliError
from kctl.spark.content import UNDECODABLE
from kctl.spark.hadoop import HadoopPath
from kctl.spark.results import ExportedFile, TaskResult
from kctl.spark.session import SparkOptions, spark_session
from kctl.spark.spark_files import describe_files
from kctl.spark.staging import STAGING, PlannedRun
from kctl.spark.target import Exports, Target
from kctl.spark.writers import ExportFormat

_SPARK_ALONE = frozenset({ExportFormat.AVRO})
"""Formats that Arrow does not write."""


class SparkStaging(PlannedRun):
    """The staging directory of a target that Spark writes to."""

    def __init__(self, path: HadoopPath) -> None:
        super().__init__(path)
        self._directory = path

    @contextmanager
    def locked(self, *, is_taken_over: bool = False) -> Iterator[None]:
        """Keep other runs out. The lock is a file: a run that was killed leaves it behind."""
        self._directory.mkdir()
        if not (self._directory / "lock").create() and not is_taken_over:
            raise CliError(
                f"another export into {self._directory.parent} is running, or was broken off",
                "wait; if none is running, --resume finishes it, --overwrite begins anew",
            )
        yield

    def assemble(self, result: TaskResult) -> None:
        """Nothing: Spark's own commit has brought the files there."""


class SparkTarget(Exports):
    """A directory of exports on one of Spark's file systems."""

    def __init__(self, spark: Any, location: str) -> None:
        path = HadoopPath.open(spark, location)
        super().__init__(path, SparkStaging(path / STAGING))
        self._spark = spark

    @property
    def has_file_per_task(self) -> bool:
        """Spark ends a file with its task, not at a size."""
        return True

    def found_files(self, number: int) -> Mapping[str, ExportedFile]:
        """The data files of an export as they are, by their path in it; Spark reads them all."""
        directory = self.export_path(number)
        aside = directory / UNDECODABLE.rstrip("/")
        found = describe_files(self._spark, str(directory))
        if aside.exists():
            found |= {
                f"{UNDECODABLE}{path}": file
                for path, file in describe_files(self._spark, str(aside)).items()
            }
        return found


def is_local(location: str) -> bool:
    """Whether a location is a directory of this machine's own file tree."""
    return "://" not in location or location.startswith("file://")


@contextmanager
def open_target(
    location: str, options: SparkOptions, export_format: ExportFormat = ExportFormat.PARQUET
) -> Iterator[Exports]:
    """The target that a location names; where Spark is needed for it, it runs meanwhile."""
    if is_local(location) and export_format not in _SPARK_ALONE:
        yield Target(location)
        return
    if is_local(location):
        location = Path(location.removeprefix("file://")).absolute().as_uri()
    with spark_session(options) as spark:
        yield SparkTarget(spark, location)
