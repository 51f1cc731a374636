"""Runs the tasks of a plan on an engine, reports progress and collects results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kctl.spark.engine.jobs import run_job
from kctl.spark.engine.local import EngineOptions, LocalOptions
from kctl.spark.engine.session import SparkOptions, spark_context, spark_session
from kctl.spark.execution.local_pool import LocalPool
from kctl.spark.execution.task import run_task
from kctl.spark.planning.plan import ExportTask, Plan
from kctl.spark.planning.settings import TaskSettings
from kctl.spark.publishing.export_directory import ExportDirectory
from kctl.spark.publishing.staging import Staging
from kctl.spark.writing.results import TaskResult


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    tasks: int
    done_tasks: int
    running_tasks: int
    done_bytes: int
    records: int


Watch = Callable[[Progress], None]


def run_plan(
    plan: Plan,
    target: ExportDirectory,
    settings: TaskSettings,
    options: EngineOptions,
    watch: Watch,
) -> list[TaskResult]:
    """Run the unfinished tasks of a plan; returns the results of all tasks.

    JobFailed has a one-line reason. Where tasks write their files themselves, finished tasks are
    kept for `--resume`, unless the disk is full.
    """
    if isinstance(target.staging, Staging):
        return _run_tasks(plan, target.staging, settings, options, watch)
    if not plan.tasks:
        return []
    assert isinstance(options, SparkOptions)  # noqa: S101 - only Spark opens other directories
    from kctl.spark.execution.spark_writer import SparkWriter  # rarely needed

    with spark_session(options) as spark:
        writer = SparkWriter(spark, str(target.staging.out), _largest_first(plan.tasks), settings)
        watcher = _Watcher(plan, writer.results, watch)
        run_job(spark.sparkContext, writer.save, watcher.look)
        return writer.finished()


def _run_tasks(
    plan: Plan,
    staging: Staging,
    settings: TaskSettings,
    options: EngineOptions,
    watch: Watch,
) -> list[TaskResult]:
    done = _Finished(plan, staging.result)
    todo = [task for task in plan.tasks if task.index not in done()]
    look = _Watcher(plan, done, watch).look
    if todo and isinstance(options, LocalOptions):
        pool = LocalPool(run_task, _largest_first(todo), settings)
        pool.run_all(options.num_workers, look)
    elif todo:
        _run_on_spark(_largest_first(todo), settings, options, look)
    results = done()
    return [results[task.index] for task in plan.tasks]


def _run_on_spark(
    tasks: Sequence[ExportTask],
    settings: TaskSettings,
    options: EngineOptions,
    look: Callable[[int], None],
) -> None:
    assert isinstance(options, SparkOptions)  # noqa: S101
    with spark_context(replace(options, is_light=True)) as context:
        work = context.parallelize(tasks, len(tasks))
        run_job(
            context, lambda: work.foreach(lambda task: _discard(run_task(task, settings))), look
        )


def _largest_first(tasks: "tuple[ExportTask, ...] | list[ExportTask]") -> list[ExportTask]:
    """Largest first, so that no long task runs alone at the end."""
    return sorted(tasks, key=lambda task: -task.size_bytes)


def _discard(_: object) -> None:
    """The result is in the staging directory; Spark does not need to transfer it."""


class _Finished:
    """The results of finished tasks; each is read once."""

    def __init__(self, plan: Plan, read: Callable[[int], TaskResult | None]) -> None:
        self._indices = [task.index for task in plan.tasks]
        self._read = read
        self._results: dict[int, TaskResult] = {}

    def __call__(self) -> Mapping[int, TaskResult]:
        for index in self._indices:
            if index not in self._results and (result := self._read(index)) is not None:
                self._results[index] = result
        return self._results


class _Watcher:
    """Reports the progress of a run when `look` is called."""

    def __init__(
        self, plan: Plan, results: Callable[[], Mapping[int, TaskResult]], watch: Watch
    ) -> None:
        self._sizes = {task.index: task.size_bytes for task in plan.tasks}
        self._results = results
        self._watch = watch

    def look(self, running_tasks: int) -> None:
        """Report the finished tasks."""
        results = self._results()
        counts = [count for result in results.values() for count in result.counts]
        self._watch(
            Progress(
                len(self._sizes),
                len(results),
                running_tasks,
                sum(self._sizes[index] for index in results),
                sum(count.records for count in counts),
            )
        )
