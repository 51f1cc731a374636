"""An export directory that Spark writes to: any of its file systems, and formats only it can write.

The layout is that of a local export directory, and exports are published in the same way: by one
rename of a directory that Spark's own commit protocol has filled. On an object store a rename
copies file by file, so readers there must check for `_manifest.json`: without it an export is
incomplete.
"""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kctl.cli.errors import CliError, usage_error
from kctl.spark.engine.hadoop import HadoopPath
from kctl.spark.engine.local import EngineOptions, LocalOptions
from kctl.spark.engine.session import spark_session
from kctl.spark.engine.spark_files import describe_files
from kctl.spark.planning.settings import ExportFormat
from kctl.spark.publishing.export_directory import ExportDirectory, LocalExportDirectory
from kctl.spark.publishing.object_store import SCHEMES, open_object_store
from kctl.spark.publishing.staging import STAGING, PlannedRun
from kctl.spark.writing.content import UNDECODABLE
from kctl.spark.writing.results import ExportedFile, TaskResult

_SPARK_ALONE = frozenset({ExportFormat.AVRO})
"""Formats that Arrow does not write."""


def _is_alive(pid: int) -> bool:
    """Whether a process of this host exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True


class SparkStaging(PlannedRun):
    """The staging directory of an export directory that Spark writes to."""

    def __init__(self, path: HadoopPath) -> None:
        super().__init__(path)
        self._directory = path

    @contextmanager
    def locked(self, *, is_taken_over: bool = False) -> Iterator[None]:
        """Exclude other runs. The lock is a file that names its owner.

        A killed run leaves it behind. It is taken over if its process was on this host and has
        ended; otherwise only by --resume and --overwrite, because other hosts cannot be checked.
        """
        self._directory.mkdir()
        lock = self._directory / "lock"
        if not lock.create() and not self._is_abandoned(lock) and not is_taken_over:
            raise CliError(
                f"another export into {self._directory.parent} is running or was interrupted",
                f"wait; if it is not running, --resume finishes it, or delete {lock}",
            )
        lock.write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
        try:
            yield
        finally:
            if not self.is_resumable:  # a run that can be resumed keeps its lock
                lock.unlink()

    @staticmethod
    def _is_abandoned(lock: HadoopPath) -> bool:
        """Whether the owner of the lock was a process of this host that has ended."""
        try:
            owner = json.loads(lock.read_text())
            host, pid = owner["host"], int(owner["pid"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return bool(host == socket.gethostname() and not _is_alive(pid))

    def assemble(self, result: TaskResult) -> None:
        """Nothing to do: Spark's own commit has moved the files there."""


class SparkExportDirectory(ExportDirectory):
    """A directory of exports on one of Spark's file systems."""

    def __init__(self, spark: Any, location: str) -> None:
        path = HadoopPath.open(spark, location)
        super().__init__(path, SparkStaging(path / STAGING))
        self._spark = spark

    @property
    def has_file_per_task(self) -> bool:
        """Spark writes one file per task, whatever its size."""
        return True

    def found_files(self, number: int) -> Mapping[str, ExportedFile]:
        """The data files of an export by relative path; Spark reads all of them."""
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
    """Whether a location is a local path."""
    return "://" not in location or location.startswith("file://")


@contextmanager
def open_export_directory(
    location: str, options: EngineOptions, export_format: ExportFormat = ExportFormat.PARQUET
) -> Iterator[ExportDirectory]:
    """The export directory at a location; starts Spark for the block if it is needed."""
    if is_local(location) and export_format not in _SPARK_ALONE:
        yield LocalExportDirectory(location)
        return
    if isinstance(options, LocalOptions) and location.partition("://")[0] in SCHEMES:
        if export_format in _SPARK_ALONE:
            raise usage_error(f"--format {export_format} needs Spark", "use --engine spark")
        with open_object_store(location) as store:
            yield store
        return
    if isinstance(options, LocalOptions):
        needed = location if not is_local(location) else f"--format {export_format}"
        raise usage_error(f"{needed} needs Spark", "use --engine spark")
    if is_local(location):
        location = Path(location.removeprefix("file://")).absolute().as_uri()
    with spark_session(options) as spark:
        yield SparkExportDirectory(spark, location)
