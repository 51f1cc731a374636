"""How far a reassignment is: a bar on a terminal, lines elsewhere, on stderr both."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kctl.options import Session
from kctl.plans.reassign_progress import Look

Watch = Callable[[str, Look], None]
"""Told which batch it is, and how far it all is."""


@contextmanager
def progress(session: Session) -> Iterator[Watch]:
    """Show looks while the block runs; a line is not repeated."""
    if not sys.stderr.isatty():
        shown = ""

        def note(batch: str, look: Look) -> None:
            nonlocal shown
            line = f"{batch}: {look.text()}"
            if line != shown:
                session.out.note(line)
            shown = line

        yield note
        return
    from rich.console import Console  # only here: a run without a bar does not pay for it
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[how]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("beginning", total=1, how="")

        def update(batch: str, look: Look) -> None:
            # Where nothing is copied, partitions are what there is to count.
            done, total = look.done_bytes, look.all_bytes
            if not total:
                done, total = look.done_partitions, look.all_partitions
            bar.update(task, description=batch, completed=done, total=total, how=look.text())

        yield update
