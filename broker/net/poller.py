"""The broker's event loop: asyncio's, which tells connections of their sockets itself.

asyncio's own way is made for everybody: a handle and a callback for each event, two system calls
to stop reading while an answer is awaited and two to go on, two more around each response that
does not fit into the socket. Here a socket is registered once, for both, edge-triggered: the kernel
tells when bytes come and when a full socket has room again, and is silent otherwise. Who is told
and does not care at the moment must remember it: it is not told again.

A connection is called where the loop waits for events, before it comes to anything else: most
requests are answered without another step of asyncio.
"""

import asyncio
import logging
import os
import select
import selectors
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT
AT_END: Final = select.EPOLLRDHUP
"""The other side has said all that it will."""
GONE: Final = select.EPOLLERR | select.EPOLLHUP
"""The other side will not read any more either."""

_FOREVER: Final = -1


class Poller(selectors.EpollSelector):
    """What the loop waits with: for asyncio's files, and for the sockets of connections."""

    def __init__(self) -> None:
        super().__init__()
        # The same epoll under a second descriptor: asyncio keeps the first one to itself.
        self._epoll = select.epoll.fromfd(os.dup(self.fileno()))
        self._on_ready: dict[int, Callable[[int], None]] = {}

    def watch(self, fd: int, on_ready: Callable[[int], None]) -> None:
        """From now on call `on_ready` with what is new of the socket, of the constants above.

        What it raises is logged, and nothing else: to close is its own business.
        OSError if the system watches too many already.
        """
        self._epoll.register(fd, READABLE | WRITABLE | AT_END | select.EPOLLET)
        self._on_ready[fd] = on_ready

    def forget(self, fd: int) -> None:
        """Watch it no longer; to be called before it is closed."""
        if self._on_ready.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait, tell connections of theirs, and give asyncio what is left."""
        ready = []
        for fd, events in self._epoll.poll(_FOREVER if timeout is None else max(timeout, 0)):
            on_ready = self._on_ready.get(fd)
            if on_ready is None:
                ready += self._for_asyncio(fd, events)
                continue
            try:
                on_ready(events)
            except Exception:  # as asyncio does: raised from here it would end the loop
                logger.exception("whoever watches a socket failed fd=%s", fd)
        return ready

    def _for_asyncio(self, fd: int, events: int) -> list[tuple[selectors.SelectorKey, int]]:
        """What asyncio wanted to know of; nothing of a connection that was closed just before."""
        key = self.get_map().get(fd)
        if key is None:
            return []
        mask = (selectors.EVENT_WRITE if events & ~READABLE else 0) | (
            selectors.EVENT_READ if events & ~WRITABLE else 0
        )
        return [(key, mask & key.events)] if mask & key.events else []

    def close(self) -> None:
        """Watch nothing any more."""
        self._epoll.close()
        super().close()


class BrokerLoop(asyncio.SelectorEventLoop):
    """The event loop that listeners need to run in."""

    def __init__(self) -> None:
        self.poller = Poller()
        super().__init__(self.poller)


def running_poller() -> Poller:
    """That of the running loop, which must be ours."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, BrokerLoop):
        raise RuntimeError("listeners run in a BrokerLoop: asyncio.Runner(loop_factory=BrokerLoop)")
    return loop.poller
