"""Runs kazoo's callbacks on the event loop, in the order of its connection thread."""

import asyncio
import select
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler


class LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo ships no types
    """A kazoo handler without worker threads: their callbacks run on the event loop.

    kazoo's own handler has one thread for responses and one for watch events, so that a response
    may overtake an event that ZooKeeper sent before it. Here both stay in order.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self.connection_thread_failed: Callable[[], object] = lambda: None
        """Called on the loop when kazoo's thread has ended with an exception."""
        self.callback_queue = self.completion_queue = _LoopQueue(self.call)

    @property
    def running(self) -> bool:
        """Always true: otherwise kazoo would run callbacks in its own thread."""
        return True

    def start(self) -> None:
        """There are no threads to start."""

    def stop(self) -> None:
        """There are no threads to stop."""

    def spawn(self, func: Callable[..., object], *args: Any, **kwargs: Any) -> threading.Thread:
        """Run kazoo's connection in a thread."""

        def run() -> None:
            try:
                func(*args, **kwargs)
            except Exception:  # noqa: BLE001  # kazoo has logged it and has closed the client
                self.call(lambda: self.connection_thread_failed())

        thread: threading.Thread = super().spawn(run)
        return thread

    def select(
        self,
        rlist: Sequence[socket.socket],
        wlist: Sequence[socket.socket],
        xlist: Sequence[socket.socket],
        timeout: float | None = None,
    ) -> tuple[list[socket.socket], list[socket.socket], list[socket.socket]]:
        """As `select.select`, for sockets that are in one list only; `xlist` is ignored.

        kazoo's own creates and closes an epoll object each time, several times per request.
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
        """Run `function` on the loop, after all functions passed before it."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function)


class _LoopQueue:
    """The queue of a worker thread, as kazoo uses it."""

    def __init__(self, call: Callable[[Callable[[], object]], None]) -> None:
        self.put = call
