"""The driver's side of an export: run the tasks on Spark, watch them, say what they made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kctl.spark.jobs import run_job
from kctl.spark.plan import ExportTask, Plan
from kctl.spark.results import TaskResult
from kctl.spark.session import SparkOptions, spark_session
from kctl.spark.settings import TaskSettings
from kctl.spark.target import Exports, Target
from kctl.spark.task import run_task


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    tasks: int
    done_tasks: int
    running_tasks: int
    done_bytes: int
    records: int


Watch = Callable[[Progress], None]


def run_plan(
    plan: Plan, target: Exports, settings: TaskSettings, options: SparkOptions, watch: Watch
) -> list[TaskResult]:
    """Do the tasks of a pinned plan that are not done yet.

    JobFailed says in one line what failed. Finished tasks stay for `--resume` where tasks write
    themselves; if the disk is full they do not, because then space is what is needed.
    """
    if isinstance(target, Target):
        return _run_tasks(plan, target, settings, options, watch)
    if not plan.tasks:
        return []
    from kctl.spark.spark_writer import SparkWriter  # few targets need it

    with spark_session(options) as spark:
        writer = SparkWriter(spark, str(target.staging.out), _largest_first(plan.tasks), settings)
        watcher = _Watcher(plan, writer.results, watch)
        run_job(spark.sparkContext, writer.save, watcher.look)
        return writer.finished()


def _run_tasks(
    plan: Plan, target: Target, settings: TaskSettings, options: SparkOptions, watch: Watch
) -> list[TaskResult]:
    staging = target.staging
    done = _Finished(plan, staging.result)
    todo = [task for task in plan.tasks if task.index not in done()]
    if todo:
        with spark_session(replace(options, is_light=True)) as spark:
            context = spark.sparkContext
            work = context.parallelize(_largest_first(todo), len(todo))
            run_job(
                context,
                lambda: work.foreach(lambda task: _discard(run_task(task, settings))),
                _Watcher(plan, done, watch).look,
            )
    results = done()
    return [results[task.index] for task in plan.tasks]


def _largest_first(tasks: "tuple[ExportTask, ...] | list[ExportTask]") -> list[ExportTask]:
    """So that no long one is left for the end."""
    return sorted(tasks, key=lambda task: -task.size_bytes)


def _discard(_: object) -> None:
    """The result is in the staging directory; Spark need not carry it."""


class _Finished:
    """The results there are, by task; each is read once."""

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
    """Tells how far a run is whenever it is asked to look."""

    def __init__(
        self, plan: Plan, results: Callable[[], Mapping[int, TaskResult]], watch: Watch
    ) -> None:
        self._sizes = {task.index: task.size_bytes for task in plan.tasks}
        self._results = results
        self._watch = watch

    def look(self, running_tasks: int) -> None:
        """Sum up what has finished."""
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
