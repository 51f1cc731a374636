"""Tells connections that their sockets have something to read, or room to write.

asyncio's own way is made for everybody: a handle and a callback for each event, two system calls
to stop reading while an answer is awaited and two to go on, two more around each response that
does not fit into the socket. Here a socket is registered once, for both, edge-triggered: the kernel
tells when bytes come and when a full socket has room again, and is silent otherwise. Who is told
and does not care at the moment must remember it: it is not told again.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Final

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT
AT_END: Final = select.EPOLLRDHUP
"""The other side has said all that it will."""
GONE: Final = select.EPOLLERR | select.EPOLLHUP
"""The other side will not read any more either."""


class Poller:
    """Watches the sockets of a listener, on behalf of the running event loop."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._on_ready: dict[int, Callable[[int], None]] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._tell)

    def watch(self, fd: int, on_ready: Callable[[int], None]) -> None:
        """From now on call `on_ready` with what is new of the socket, of the constants above.

        OSError if the system watches too many already.
        """
        self._epoll.register(fd, READABLE | WRITABLE | AT_END | select.EPOLLET)
        self._on_ready[fd] = on_ready

    def forget(self, fd: int) -> None:
        """Watch it no longer; to be called before it is closed."""
        if self._on_ready.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._epoll.closed:
            return
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _tell(self) -> None:
        for fd, events in self._epoll.poll(0):
            on_ready = self._on_ready.get(fd)
            if on_ready is not None:  # else one that was told before has closed it
                on_ready(events)
