"""The staging directory of a run, inside the export directory and hidden from readers.

    <target>/_staging/
      lock                     held by the active run
      plan.json                the pinned plan; if it exists, the run can be resumed
      attempts/task-00007.x/   files of a running (or dead) attempt
      done/task-00007/         files of the attempt that finished first, with result.json
      out/                     the export being assembled

Spark, Hive and Arrow ignore names that begin with an underscore. An attempt is completed by
renaming its directory, so a task is never published partially or twice.
"""

import fcntl
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TextIO
from uuid import uuid4

from kctl.cli.errors import CliError
from kctl.spark.planning.plan import Plan
from kctl.spark.planning.settings import ContentType, TaskSettings
from kctl.spark.publishing.paths import AnyPath, remove_tree, write_json
from kctl.spark.writing.output import write_empty_file
from kctl.spark.writing.results import ExportedFile, TaskResult

STAGING = "_staging"
_RESULT = "result.json"


class PlannedRun(ABC):
    """The driver's files of a run: the plan and the new export.

    Tasks write below `path` themselves (`Staging`), or Spark does (`SparkStaging`).
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self.out = path / "out"
        self._plan_file = path / "plan.json"

    @abstractmethod
    def locked(self, *, is_taken_over: bool = False) -> AbstractContextManager[None]:
        """Exclude other runs; `is_taken_over` for a run that continues or replaces another."""

    @property
    def is_resumable(self) -> bool:
        """Whether there is an interrupted run."""
        return self._plan_file.exists()

    @property
    def has_finished_tasks(self) -> bool:
        """Whether `--resume` could use finished tasks."""
        return False

    def begin(self, plan: Plan) -> None:
        """Store the plan; removes the files of an earlier run."""
        self.prepare()
        self.keep(plan)

    def prepare(self) -> None:
        """Begin a run that cannot be resumed yet; removes the files of an earlier run."""
        self.clear()
        self._prepare()

    def keep(self, plan: Plan) -> None:
        """Store the plan: from now on the run can be resumed."""
        write_json(self._plan_file, plan.to_json())

    def _prepare(self) -> None:
        """Create the directories; tasks do not, so that none outlives the run."""
        self.path.mkdir(parents=True, exist_ok=True)

    def plan(self) -> Plan:
        """The plan of the interrupted run."""
        return Plan.from_json(json.loads(self._plan_file.read_text()))

    def clear(self) -> None:
        """Remove everything but the lock; the plan first, so that no partial run is resumed."""
        self._plan_file.unlink(missing_ok=True)
        remove_tree(self.out)

    def remove(self) -> None:
        """Remove the staging directory."""
        self.clear()
        remove_tree(self.path)

    @abstractmethod
    def assemble(self, result: TaskResult) -> None:
        """Move the files of a task to the new export; idempotent."""

    def write_empty(self, plan: Plan) -> list[ExportedFile]:
        """Write a file without rows to an export that has none, where tasks write files."""
        del plan
        return []


class Staging(PlannedRun):
    """The staging directory that tasks write to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._directory = path
        self._attempts = path / "attempts"
        self._done = path / "done"

    @contextmanager
    def locked(self, *, is_taken_over: bool = False) -> Iterator[None]:
        """Exclude other runs; the lock ends with the process, however it ends."""
        del is_taken_over  # a held lock always has a live owner
        with self._open_locked():
            yield

    def _open_locked(self) -> TextIO:
        """The lock file, open and locked; CliError if another process holds it.

        The owner removes the file with the staging directory while it holds the lock. A process
        that had opened the file before locks one that no other process can see, so the file that
        was locked must still be the one at the path.
        """
        path = self._directory / "lock"
        while True:
            try:
                self._directory.mkdir(parents=True, exist_ok=True)
                lock = path.open("w")
            except (FileNotFoundError, FileExistsError):  # its owner removed the directory
                if self._directory.is_file():
                    raise
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(lock, path):
                    return lock
            except BlockingIOError as error:
                lock.close()
                raise CliError(
                    f"another export into {self._directory.parent} is running",
                    "wait until it has ended",
                ) from error
            lock.close()

    @property
    def has_finished_tasks(self) -> bool:
        """Whether `--resume` could use finished tasks."""
        return self.is_resumable and self._done.is_dir() and any(self._done.iterdir())

    def _prepare(self) -> None:
        super()._prepare()
        self._attempts.mkdir()
        self._done.mkdir()

    def clear(self) -> None:
        """Remove everything but the lock; the plan first, so that no partial run is resumed."""
        super().clear()
        remove_tree(self._attempts)
        remove_tree(self._done)

    # tasks

    @contextmanager
    def attempt(self, index: int) -> Iterator[Path]:
        """A directory for one attempt at a task; removed if the attempt fails."""
        path = self._attempts / f"{_name(index)}.{uuid4().hex[:8]}"
        try:
            path.mkdir()
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self._directory.parent} is not shared with the driver; --to must be a "
                "directory that all workers share, or an address such as hdfs://"
            ) from error
        try:
            yield path
        finally:
            # Already renamed if the attempt was completed.
            remove_tree(path)

    def finish(self, attempt: Path, result: TaskResult) -> TaskResult:
        """Complete the task with this attempt; if another attempt was first, return its result."""
        write_json(attempt / _RESULT, result.to_json())
        try:
            attempt.rename(self._done / _name(result.index))
        except OSError:
            earlier = self.result(result.index)
            if earlier is None:
                raise
            return earlier
        return result

    def write_empty(self, plan: Plan) -> list[ExportedFile]:
        """A file with the columns and no rows, so that readers can open the export.

        JSON values without a schema have none: a file would fix the type of the column to text.
        """
        settings = TaskSettings.from_json(plan.options)
        if settings.value_type is ContentType.JSON and not settings.value_schema:
            return []
        topic = plan.ranges[0].topic if plan.ranges else ""
        return [write_empty_file(self._directory / self.out.name, topic, settings)]

    def result(self, index: int) -> TaskResult | None:
        """The result of a task; None if it is not finished."""
        try:
            text = (self._done / _name(index) / _RESULT).read_text()
        except FileNotFoundError:
            return None
        return TaskResult.from_json(json.loads(text))

    def assemble(self, result: TaskResult) -> None:
        """Move the files of a task to the new export; idempotent."""
        for file in result.files:
            source = self._done / _name(result.index) / file.path
            target = self._directory / self.out.name / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.exists():
                source.rename(target)


def _is_at(file: TextIO, path: Path) -> bool:
    """Whether an open file is the one that the path names now."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(file.fileno()), found)


def _name(index: int) -> str:
    return f"task-{index:05d}"
