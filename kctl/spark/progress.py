"""How far an export is: a bar on the terminal, and only there."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kctl.spark.export import Progress, Watch
from kctl.spark.plan import Plan


def _unseen(_: Progress) -> None:
    """Nobody looks."""


@contextmanager
def progress_bar(plan: Plan) -> Iterator[Watch]:
    """A bar with tasks, records, bytes, rate and time left, if a person can see it."""
    if not sys.stderr.isatty():
        yield _unseen
        return
    from rich.console import Console  # only here: a run without a bar does not pay for it
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with RichProgress(
        *columns,
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("starting Spark", total=plan.size_bytes)

        def watch(state: Progress) -> None:
            text = (
                f"{state.done_tasks}/{state.tasks} tasks, {state.running_tasks} running, "
                f"{state.records:,} records"
            )
            bar.update(task, completed=state.done_bytes, description=text)

        yield watch
