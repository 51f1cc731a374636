"""The poller of Linux; imported only where the system has epoll.

A socket is registered once, for reading and writing, edge-triggered: the kernel reports when bytes
arrive and when a full socket has room again. No system call changes a registration afterwards.
"""

import logging
import os
import select
import selectors
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Final

from broker.net.poller import AT_END, READABLE, WRITABLE, Poller

assert sys.platform == "linux"  # noqa: S101  # for type checks of other platforms

logger = logging.getLogger(__name__)

_FOREVER: Final = -1


class EpollPoller(selectors.EpollSelector, Poller):
    """See Poller and the module."""

    def __init__(self) -> None:
        super().__init__()
        # The same epoll under a second descriptor: the first is private to EpollSelector.
        self._epoll = select.epoll.fromfd(os.dup(self.fileno()))
        self._on_ready: dict[int, Callable[[int], None]] = {}
        self.woken_s = perf_counter()
        self.idle_s = 0.0

    def watch(
        self, fd: int, on_ready: Callable[[int], None], awaited: Callable[[], int] | None = None
    ) -> None:
        """See Poller; `awaited` is not needed, because the kernel does not repeat events."""
        self._epoll.register(fd, READABLE | WRITABLE | AT_END | select.EPOLLET)
        self._on_ready[fd] = on_ready

    def forget(self, fd: int) -> None:
        """See Poller."""
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
