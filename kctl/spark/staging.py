"""Where a run keeps what is not published yet, below the target and hidden from readers.

    <target>/_staging/
      lock                     taken by the run that works here
      plan.json                the pinned plan: its presence makes the run one that can be resumed
      attempts/task-00007.x/   files of an attempt that is under way (or died)
      done/task-00007/         files of the attempt that finished first, with result.json
      out/                     the export being put together

Spark, Hive and Arrow pass over names that begin with an underscore. An attempt becomes done by the
rename of its directory, so there is never half a task, and never two of the same.
"""

import fcntl
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

from kctl.errors import CliError
from kctl.spark.places import Place, remove_tree, write_json
from kctl.spark.plan import Plan
from kctl.spark.results import TaskResult

STAGING = "_staging"
_RESULT = "result.json"


class PlannedRun(ABC):
    """What the driver keeps of a run, wherever that is: the plan, and the export's new directory.

    Tasks write below `path` themselves (`Staging`), or Spark does (`SparkStaging`).
    """

    def __init__(self, path: Place) -> None:
        self.path = path
        self.out = path / "out"
        self._plan_file = path / "plan.json"

    @abstractmethod
    def locked(self, *, is_taken_over: bool = False) -> AbstractContextManager[None]:
        """Keep other runs out of the target; `is_taken_over` for one that ends another's."""

    @property
    def is_resumable(self) -> bool:
        """Whether a run was broken off here."""
        return self._plan_file.exists()

    @property
    def has_finished_tasks(self) -> bool:
        """Whether resuming would save anything."""
        return False

    def begin(self, plan: Plan) -> None:
        """Pin the plan; whatever an earlier run has left is gone."""
        self.clear()
        self._prepare()
        write_json(self._plan_file, plan.to_json())

    def _prepare(self) -> None:
        """Make what tasks find there; they make nothing themselves that might outlive the run."""
        self.path.mkdir(parents=True, exist_ok=True)

    def plan(self) -> Plan:
        """The plan of the run that was broken off."""
        return Plan.from_json(json.loads(self._plan_file.read_text()))

    def clear(self) -> None:
        """Remove everything but the lock; the plan first, so that no half is ever resumed."""
        self._plan_file.unlink(missing_ok=True)
        remove_tree(self.out)

    def remove(self) -> None:
        """Remove the directory itself."""
        self.clear()
        remove_tree(self.path)

    @abstractmethod
    def assemble(self, result: TaskResult) -> None:
        """Bring a task's files to where they are in the export; may be done again."""


class Staging(PlannedRun):
    """The staging directory of a target that tasks write to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._directory = path
        self._attempts = path / "attempts"
        self._done = path / "done"

    @contextmanager
    def locked(self, *, is_taken_over: bool = False) -> Iterator[None]:
        """Keep other runs out of the target; the lock ends with the process, whatever ends it."""
        del is_taken_over  # a lock that is held is held by somebody who lives
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CliError(
                    f"another export into {self._directory.parent} is running",
                    "wait until it has ended",
                ) from error
            yield

    @property
    def has_finished_tasks(self) -> bool:
        """Whether resuming would save anything."""
        return self.is_resumable and self._done.is_dir() and any(self._done.iterdir())

    def _prepare(self) -> None:
        super()._prepare()
        self._attempts.mkdir()
        self._done.mkdir()

    def clear(self) -> None:
        """Remove everything but the lock; the plan first, so that no half is ever resumed."""
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
                f"{self._directory.parent} is not the driver's on this worker; --to must name a "
                "directory that all workers share, or an address such as hdfs://"
            ) from error
        try:
            yield path
        finally:
            # Gone already if it was finished.
            remove_tree(path)

    def finish(self, attempt: Path, result: TaskResult) -> TaskResult:
        """Make the attempt the task's one; where another was first, that one's result counts."""
        write_json(attempt / _RESULT, result.to_json())
        try:
            attempt.rename(self._done / _name(result.index))
        except OSError:
            earlier = self.result(result.index)
            if earlier is None:
                raise
            return earlier
        return result

    def result(self, index: int) -> TaskResult | None:
        """What came of a task; None as long as it has not finished."""
        try:
            text = (self._done / _name(index) / _RESULT).read_text()
        except FileNotFoundError:
            return None
        return TaskResult.from_json(json.loads(text))

    def assemble(self, result: TaskResult) -> None:
        """Move a task's files to where they are in the export; may be done again."""
        for file in result.files:
            source = self._done / _name(result.index) / file.path
            target = self._directory / self.out.name / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.exists():
                source.rename(target)


def _name(index: int) -> str:
    return f"task-{index:05d}"
