"""Tells who waits for room to write that there is some.

asyncio's own way, `add_writer` and `remove_writer` around each response that does not fit into the
socket, costs two system calls and the selector's book-keeping each time. Here a socket is
registered once, edge-triggered: the kernel tells of it when it was full and has room again, and
otherwise is silent.
"""

import asyncio
import select
from collections.abc import Callable


class Writers:
    """Watches the sockets of a listener, on behalf of the running event loop."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._on_room: dict[int, Callable[[], None]] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._tell)

    def watch(self, fd: int, on_room: Callable[[], None]) -> None:
        """From now on call `on_room` whenever the socket has room after a write found it full."""
        if fd not in self._on_room:
            self._on_room[fd] = on_room
            self._epoll.register(fd, select.EPOLLOUT | select.EPOLLET)

    def forget(self, fd: int) -> None:
        """Watch it no longer; to be called before it is closed."""
        if self._on_room.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._epoll.closed:
            return
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _tell(self) -> None:
        for fd, _ in self._epoll.poll(0):
            on_room = self._on_room.get(fd)
            if on_room is not None:  # else one that was told before has closed it
                on_room()
