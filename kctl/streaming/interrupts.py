"""Ctrl-C, heard where it does no harm."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ctrl_c_noted() -> Iterator[threading.Event]:
    """Inside, the first Ctrl-C only sets the event, and a second one interrupts as usual.

    For loops that must finish a step, e.g. count what they have printed as consumed. Outside of
    the main thread, which is the only one that hears signals, the event is never set.
    """
    noted = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
