"""The progress display of all long-running commands: a bar on a terminal, on stderr.

    with progress_display() as show:
        show("batch 1/3", done_bytes, total_bytes)

The bar disappears when the block ends. If stderr is not a terminal, nothing is shown, except for
commands that pass `note`: they print one line per change, for logs of unattended runs.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from kctl.cli.theme import RICH_STYLES, has_color

if TYPE_CHECKING:
    from rich.progress import Progress

BAR_WIDTH = 20


class ShowProgress(Protocol):
    """Updates the display."""

    def __call__(self, description: str, done: int, total: int, *, line: str = "") -> None:
        """Show `done` of `total` bytes or items; `line` is the text where there is no bar."""


@contextmanager
def progress_display(
    *,
    is_enabled: bool = True,
    note: Callable[[str], None] | None = None,
    of_bytes: bool = True,
) -> Iterator[ShowProgress]:
    """A bar with remaining time while the block runs; with `of_bytes` also bytes and rate."""
    if not is_enabled:
        yield _ignore
    elif not sys.stderr.isatty():
        yield _ignore if note is None else _lines(note)
    else:
        with _bar(of_bytes=of_bytes) as bar:
            task = bar.add_task("starting", total=None)

            last = 0

            def show(description: str, done: int, total: int, *, line: str = "") -> None:
                nonlocal last
                if done < last:  # the next file or stage: rate and time start again
                    bar.reset(task)
                bar.update(task, description=description, completed=done, total=total, refresh=True)
                last = done

            yield show


def _ignore(description: str, done: int, total: int, *, line: str = "") -> None:
    """Show nothing."""


def _lines(note: Callable[[str], None]) -> ShowProgress:
    """Print `line` whenever it changes."""
    last = ""

    def show(description: str, done: int, total: int, *, line: str = "") -> None:
        nonlocal last
        text = f"{description}: {line}" if line else description
        if text != last:
            note(text)
        last = text

    return show


def _bar(*, of_bytes: bool) -> "Progress":
    from rich.console import Console  # imported here: runs without a bar do not pay for rich
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.theme import Theme

    console = Console(stderr=True, theme=Theme(RICH_STYLES), no_color=not has_color(sys.stderr))
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=BAR_WIDTH),
        *([DownloadColumn(), TransferSpeedColumn()] if of_bytes else [TaskProgressColumn()]),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        auto_refresh=of_bytes,
    )
