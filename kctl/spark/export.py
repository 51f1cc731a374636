"""The driver's side of an export: run the tasks on Spark, watch them, publish what they made."""

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kctl.errors import CliError, ExitStatus
from kctl.spark.plan import ExportTask, Plan
from kctl.spark.results import TaskResult
from kctl.spark.session import SparkOptions, spark_session
from kctl.spark.settings import TaskSettings
from kctl.spark.target import Target
from kctl.spark.task import run_task

_POLL_S = 0.2


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    tasks: int
    done_tasks: int
    done_bytes: int
    records: int


Watch = Callable[[Progress], None]


def run_plan(plan: Plan, target: Target, options: SparkOptions, watch: Watch) -> list[TaskResult]:
    """Do the tasks of a pinned plan that are not done yet.

    CliError says in one line what failed. Finished tasks stay for `--resume`; if the disk is full
    they do not, because then space is what is needed.
    """
    settings = TaskSettings.from_json(plan.options)
    done = {task.index: target.staging.result(task.index) for task in plan.tasks}
    todo = [task for task in plan.tasks if done[task.index] is None]
    if todo:
        with spark_session(options) as spark:
            _run_on_spark(spark, todo, settings, _Watcher(plan, target, watch))
    results = [target.staging.result(task.index) for task in plan.tasks]
    return [result for result in results if result is not None]


def _run_on_spark(
    spark: Any, tasks: list[ExportTask], settings: TaskSettings, watcher: "_Watcher"
) -> None:
    context = spark.sparkContext
    context.setJobGroup("kctl", "kctl spark-export", interruptOnCancel=True)
    # The largest first, so that no long one is left for the end.
    ordered = sorted(tasks, key=lambda task: -task.size_bytes)
    work = context.parallelize(ordered, len(ordered))
    failure: list[Exception] = []

    def run() -> None:
        try:
            work.foreach(lambda task: _discard(run_task(task, settings)))
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits
            failure.append(error)

    # Py4J waits in C for Java; in a thread of its own the wait leaves room for Ctrl-C.
    job = threading.Thread(target=run, daemon=True)
    job.start()
    try:
        while job.is_alive():
            job.join(_POLL_S)
            watcher.look()
    except KeyboardInterrupt:
        context.cancelAllJobs()
        job.join(10)
        raise CliError(
            "interrupted; nothing was published", "--resume finishes it", ExitStatus.INTERRUPTED
        ) from None
    if failure:
        raise explain(failure[0]) from failure[0]


def _discard(_: object) -> None:
    """The result is in the staging directory; Spark need not carry it."""


def explain(error: Exception) -> CliError:
    """The last line of what a worker raised, which is the one that says what was wrong."""
    lines = [line.strip() for line in str(error).splitlines()]
    raised = [line for line in lines if _is_exception(line)]
    reason = raised[0].partition(": ")[2] if raised else (lines or ["?"])[0]
    if f"[Errno {errno.ENOSPC}]" in str(error) or "No space left" in str(error):
        return DiskFull(f"the disk is full: {reason}", "nothing was published, nothing is left")
    return CliError(f"a task failed: {reason}", "nothing was published; --resume tries again")


class DiskFull(CliError):
    """No space: the one failure after which finished tasks are in the way."""


def _is_exception(line: str) -> bool:
    name = line.partition(": ")[0]
    return (
        name.replace(".", "").isidentifier()
        and name.rpartition(".")[2][:1].isupper()
        and (not line.startswith(("Caused", "Driver", "org.")))
    )


class _Watcher:
    """Sums up what is done whenever it is asked to look."""

    def __init__(self, plan: Plan, target: Target, watch: Watch) -> None:
        self._waiting = {task.index: task for task in plan.tasks}
        self._target = target
        self._watch = watch
        self._state = Progress(len(plan.tasks), 0, 0, 0)

    def look(self) -> None:
        """Count the tasks that have finished since."""
        for index, task in list(self._waiting.items()):
            result = self._target.staging.result(index)
            if result is not None:
                del self._waiting[index]
                self._state = replace(
                    self._state,
                    done_tasks=self._state.done_tasks + 1,
                    done_bytes=self._state.done_bytes + task.size_bytes,
                    records=self._state.records + sum(c.records for c in result.counts),
                )
        self._watch(self._state)
