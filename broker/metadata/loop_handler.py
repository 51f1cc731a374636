"""kazoo's callbacks on our event loop, in the order of its connection thread."""

import asyncio
import select
import socket
from collections.abc import Callable, Sequence

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

    def select(
        self,
        rlist: Sequence[socket.socket],
        wlist: Sequence[socket.socket],
        xlist: Sequence[socket.socket],
        timeout: float | None = None,
    ) -> tuple[list[socket.socket], list[socket.socket], list[socket.socket]]:
        """As `select.select`, for sockets that are in one list each and none in the third.

        kazoo's own makes and closes an epoll object each time, several times per request.
        """
        poll = select.poll()
        for sockets, event in ((rlist, select.POLLIN), (wlist, select.POLLOUT)):
            for watched in sockets:
                poll.register(watched, event)
        ready = {fd for fd, _ in poll.poll(None if timeout is None else timeout * 1000)}
        return (
            [watched for watched in rlist if watched.fileno() in ready],
            [watched for watched in wlist if watched.fileno() in ready],
            [],
        )

    def call(self, function: Callable[[], object]) -> None:
        """Run `function` on the loop, after everything that was handed over before it."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function)


class _LoopQueue:
    """Looks to kazoo like the queue of a worker thread."""

    def __init__(self, call: Callable[[Callable[[], object]], None]) -> None:
        self.put = call
