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

if TYPE_CHECKING:
    from rich.progress import Progress

BAR_WIDTH = 20


class ShowProgress(Protocol):
    """Updates the display."""

    def __call__(self, description: str, done: int, total: int, *, line: str = "") -> None:
        """Show `done` of `total` bytes; `line` is the text where there is no bar."""


@contextmanager
def progress_display(
    *, is_enabled: bool = True, note: Callable[[str], None] | None = None
) -> Iterator[ShowProgress]:
    """A bar with bytes, rate and remaining time while the block runs."""
    if not is_enabled:
        yield _ignore
    elif not sys.stderr.isatty():
        yield _ignore if note is None else _lines(note)
    else:
        with _bar() as bar:
            task = bar.add_task("starting", total=None)

            last = 0

            def show(description: str, done: int, total: int, *, line: str = "") -> None:
                nonlocal last
                if done < last:  # the next file or stage: rate and time start again
                    bar.reset(task)
                bar.update(task, description=description, completed=done, total=total)
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


def _bar() -> "Progress":
    from rich.console import Console  # imported here: runs without a bar do not pay for rich
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=BAR_WIDTH),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
