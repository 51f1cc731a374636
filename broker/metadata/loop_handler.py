"""kazoo's callbacks on our event loop, in the order of its connection thread."""

import asyncio
from collections.abc import Callable

from kazoo.handlers.threading import SequentialThreadingHandler


class LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo ships no types
    """A kazoo handler without worker threads: what would be queued for them goes to the loop.

    kazoo's own handler has one thread for answers and one for watch events, so that an answer may
    overtake the event that ZooKeeper sent before it. Here both keep their order.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self.callback_queue = self.completion_queue = _LoopQueue(self.call)

    @property
    def running(self) -> bool:
        """Always: kazoo would run callbacks in its own thread otherwise."""
        return True

    def start(self) -> None:
        """There are no threads to start."""

    def stop(self) -> None:
        """Nor any to stop."""

    def call(self, function: Callable[[], object]) -> None:
        """Run `function` on the loop, after everything that was handed over before it."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function)


class _LoopQueue:
    """Looks to kazoo like the queue of a worker thread."""

    def __init__(self, call: Callable[[Callable[[], object]], None]) -> None:
        self.put = call
