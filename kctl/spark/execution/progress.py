"""Progress of an export."""

from collections.abc import Iterator
from contextlib import contextmanager

from kctl.cli.progress import progress_display
from kctl.spark.execution.runner import Progress, Watch
from kctl.spark.planning.plan import Plan


@contextmanager
def progress_bar(
    plan: Plan, starting: str = "starting", *, is_enabled: bool = True
) -> Iterator[Watch]:
    """A bar with tasks, records, bytes, rate and remaining time, if stderr is a terminal."""
    with progress_display(is_enabled=is_enabled) as show:
        show(starting, 0, plan.size_bytes)

        def watch(state: Progress) -> None:
            text = (
                f"{state.done_tasks}/{state.tasks} tasks, {state.running_tasks} running, "
                f"{state.records:,} records"
            )
            show(text, state.done_bytes, plan.size_bytes)

        yield watch
