"""The broker's event loop: asyncio's, with a selector that calls connections directly.

asyncio's transports cost a handle and a callback per event, two system calls to pause and two to
resume reading around each deferred response, and two more around each response that does not fit
into the socket. Here a socket is registered once, for reading and writing, edge-triggered: the
kernel reports when bytes arrive and when a full socket has room again. Events are not repeated: a
callback that ignores one must remember it.

Callbacks run inside `select`, before anything else in the loop iteration: most requests are
processed without another step of asyncio.
"""

import asyncio
import logging
import os
import select
import selectors
from collections.abc import Callable
from time import perf_counter
from typing import Final

logger = logging.getLogger(__name__)

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT
AT_END: Final = select.EPOLLRDHUP
"""The client has closed its sending side."""
GONE: Final = select.EPOLLERR | select.EPOLLHUP
"""The client will not read any more either."""

_FOREVER: Final = -1


class Poller(selectors.EpollSelector):
    """The selector of the event loop: for asyncio's files and for the sockets of connections."""

    def __init__(self) -> None:
        super().__init__()
        # The same epoll under a second descriptor: the first is private to EpollSelector.
        self._epoll = select.epoll.fromfd(os.dup(self.fileno()))
        self._on_ready: dict[int, Callable[[int], None]] = {}
        self.woken_s = perf_counter()
        """When the loop last stopped waiting for events."""
        self.idle_s = 0.0
        """How long the loop has waited for events in all."""

    def watch(self, fd: int, on_ready: Callable[[int], None]) -> None:
        """Call `on_ready` with each event of the socket, a combination of the constants above.

        An exception of `on_ready` is logged; the socket stays open and registered.
        OSError if the limit of epoll registrations is reached.
        """
        self._epoll.register(fd, READABLE | WRITABLE | AT_END | select.EPOLLET)
        self._on_ready[fd] = on_ready

    def forget(self, fd: int) -> None:
        """Stop watching a socket; must be called before it is closed."""
        if self._on_ready.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events, run the callbacks of connections, and return the events of asyncio."""
        ready = []
        waiting_since_s = perf_counter()
        polled = self._epoll.poll(_FOREVER if timeout is None else max(timeout, 0))
        self.woken_s = perf_counter()
        self.idle_s += self.woken_s - waiting_since_s
        for fd, events in polled:
            on_ready = self._on_ready.get(fd)
            if on_ready is None:
                ready += self._for_asyncio(fd, events)
                continue
            try:
                on_ready(events)
            except Exception:  # as asyncio does: an exception from here would end the loop
                logger.exception("callback of a socket failed fd=%s", fd)
        return ready

    def _for_asyncio(self, fd: int, events: int) -> list[tuple[selectors.SelectorKey, int]]:
        """The event as asyncio expects it; nothing for a connection that was closed just before."""
        key = self.get_map().get(fd)
        if key is None:
            return []
        mask = (selectors.EVENT_WRITE if events & ~READABLE else 0) | (
            selectors.EVENT_READ if events & ~WRITABLE else 0
        )
        return [(key, mask & key.events)] if mask & key.events else []

    def close(self) -> None:
        """Close both descriptors."""
        self._epoll.close()
        super().close()


class BrokerLoop(asyncio.SelectorEventLoop):
    """The event loop that listeners require."""

    def __init__(self) -> None:
        self.poller = Poller()
        super().__init__(self.poller)


def running_poller() -> Poller:
    """The poller of the running loop, which must be a BrokerLoop."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, BrokerLoop):
        raise RuntimeError("a listener needs a BrokerLoop: asyncio.Runner(loop_factory=BrokerLoop)")
    return loop.poller
