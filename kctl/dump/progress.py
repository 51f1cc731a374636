"""How far a long reading is: a bar on the terminal, and only there."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kctl.dump.files import DumpFile

Watch = Callable[[DumpFile], Callable[[int], None]]
"""Told of each file before it is read, it gives what to tell how many bytes of it are read."""


def _unseen(_: DumpFile) -> Callable[[int], None]:
    return lambda _position: None


@contextmanager
def progress_bar(*, is_wanted: bool) -> Iterator[Watch]:
    """A bar on stderr while the block runs, if a person can see it and it disturbs nothing.

    Results that go to the same terminal show by themselves that something happens.
    """
    if not (is_wanted and sys.stderr.isatty()):
        yield _unseen
        return
    from rich.console import Console  # only here: a run without a bar does not pay for it
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:

        def watch(file: DumpFile) -> Callable[[int], None]:
            for task in bar.task_ids:
                bar.remove_task(task)
            name = f"{file.path.parent.name}/{file.path.name}"
            task = bar.add_task(name, total=file.path.stat().st_size)
            return lambda position: bar.update(task, completed=position)

        yield watch
