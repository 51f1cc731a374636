"""Ctrl-C, heard where it does no harm."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ctrl_c_noted(*others: signal.Signals) -> Iterator[threading.Event]:
    """Inside, the first Ctrl-C only sets the event, and a second one interrupts as usual.

    For loops that must finish a step, e.g. count what they have printed as consumed. `others` are
    signals that count as Ctrl-C too. Outside of the main thread, which is the only one that hears
    signals, the event is never set.
    """
    noted = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    with _handled((signal.SIGINT, *others), note):
        yield noted


@contextmanager
def undisturbed() -> Iterator[None]:
    """Inside, neither Ctrl-C nor a polite kill has an effect: for the last thing a run must do."""
    with _handled((signal.SIGINT, signal.SIGTERM), lambda _number, _frame: None):
        yield


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
