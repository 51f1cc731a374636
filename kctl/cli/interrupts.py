"""Deferred handling of Ctrl-C and other signals."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATION = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a run like Ctrl-C: kill, and a closed terminal or ssh session."""


@contextmanager
def ctrl_c_noted(*others: signal.Signals) -> Iterator[threading.Event]:
    """In the block the first Ctrl-C sets the event; a second one raises KeyboardInterrupt.

    For loops that must finish a step, such as counting printed records as consumed. `others` are
    signals treated like Ctrl-C. If SIGHUP is one of them, output to a closed terminal is discarded
    from then on. Outside the main thread, which alone receives signals, the event is never set.
    """
    noted = threading.Event()

    terminals = _terminals()

    def note(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            discard_output(terminals)
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    with _handled((signal.SIGINT, *others), note):
        yield noted


@contextmanager
def undisturbed() -> Iterator[None]:
    """In the block SIGINT, SIGTERM and SIGHUP are ignored: for cleanup that must complete."""
    terminals = _terminals()

    def ignore(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            discard_output(terminals)

    with _handled((signal.SIGINT, *TERMINATION), ignore):
        yield


def discard_output(terminals: Iterable[int]) -> None:
    """Redirect those descriptors to /dev/null whose terminal was closed.

    Writing to a closed terminal fails with EIO, which would end the cleanup at its first message.
    """
    for number in terminals:
        if not os.isatty(number):  # false as soon as the terminal is closed
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, number)
            os.close(null)


def _terminals() -> list[int]:
    """The descriptors of stdout and stderr that are terminals."""
    return [stream.fileno() for stream in (sys.stdout, sys.stderr) if stream.isatty()]


@contextmanager
def _handled(
    signals: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
