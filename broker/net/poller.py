"""The broker's event loop: asyncio's, with a selector that calls connections directly.

asyncio's transports cost a handle and a callback per event, two system calls to pause and two to
resume reading around each deferred response, and two more around each response that does not fit
into the socket. Here callbacks run inside `select`, before anything else in the loop iteration:
most requests are processed without another step of asyncio.

There are two pollers. `EpollPoller` (Linux) registers a socket once, edge-triggered. Elsewhere
`SelectorPoller` does the same with the `selectors` of the standard library.
"""

import asyncio
import logging
import select
import selectors
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping
from selectors import SelectorKey
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

logger = logging.getLogger(__name__)

# The values are those of epoll(7), so that its events need no translation.
READABLE: Final = 0x001
WRITABLE: Final = 0x004
AT_END: Final = 0x2000
"""The client has closed its sending side. Only EpollPoller reports it."""
GONE: Final = 0x008 | 0x010
"""The client will not read any more either. Only EpollPoller reports it."""


def _readable() -> int:
    return READABLE


class Poller(selectors.BaseSelector):
    """The selector of the event loop: for asyncio's files and for the sockets of connections."""

    woken_s: float
    """When the loop last stopped waiting for events."""
    idle_s: float
    """How long the loop has waited for events in all."""

    @abstractmethod
    def watch(
        self, fd: int, on_ready: Callable[[int], None], awaited: Callable[[], int] = _readable
    ) -> None:
        """Call `on_ready` with each event of the socket, a combination of the constants above.

        Events are edge-triggered: one that `on_ready` ignores is not repeated. `awaited` returns
        the events that the owner of the socket has not been notified of and waits for, for pollers
        whose system repeats events.

        An exception of `on_ready` is logged; the socket stays open and registered.
        OSError if the system's limit of registrations is reached.
        """

    @abstractmethod
    def forget(self, fd: int) -> None:
        """Stop watching a socket; must be called before it is closed."""


class SelectorPoller(Poller):
    """The poller for systems without epoll, such as macOS.

    `selectors` are level-triggered: they report an event until it has been handled. Therefore each
    socket is registered only for what its owner waits for, which is queried before each wait. That
    costs time in proportion to the number of connections; machines of developers have few.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._watched: dict[int, tuple[Callable[[int], None], Callable[[], int]]] = {}
        self._registered: dict[int, int] = {}
        """By watched socket: the events of `selectors` that it is registered for.
        Invariant: none of them is 0."""
        self.woken_s = perf_counter()
        self.idle_s = 0.0

    # --- the interface of a selector, for asyncio's own files -------------------------------------

    def register(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> SelectorKey:
        """See BaseSelector."""
        return self._selector.register(fileobj, events, data)

    def unregister(self, fileobj: "FileDescriptorLike") -> SelectorKey:
        """See BaseSelector."""
        return self._selector.unregister(fileobj)

    def modify(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> SelectorKey:
        """See BaseSelector."""
        return self._selector.modify(fileobj, events, data)

    def get_map(self) -> "Mapping[FileDescriptorLike, SelectorKey]":
        """See BaseSelector."""
        return self._selector.get_map()

    def close(self) -> None:
        """See BaseSelector."""
        self._selector.close()

    # --- sockets of connections -------------------------------------------------------------------

    def watch(
        self, fd: int, on_ready: Callable[[int], None], awaited: Callable[[], int] = _readable
    ) -> None:
        """See Poller."""
        self._watched[fd] = (on_ready, awaited)

    def forget(self, fd: int) -> None:
        """See Poller."""
        self._watched.pop(fd, None)
        if self._registered.pop(fd, 0):
            self._selector.unregister(fd)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait for events, run the callbacks of connections, and return the events of asyncio."""
        for fd, (_, awaited) in self._watched.items():
            self._register(fd, awaited())
        ready = []
        waiting_since_s = perf_counter()
        polled = self._selector.select(timeout)
        self.woken_s = perf_counter()
        self.idle_s += self.woken_s - waiting_since_s
        for key, mask in polled:
            if key.fd not in self._registered:
                if key.fd in self._selector.get_map():  # else a callback has just closed it
                    ready.append((key, mask))
                continue
            on_ready, _ = self._watched[key.fd]
            try:
                on_ready(
                    (READABLE if mask & selectors.EVENT_READ else 0)
                    | (WRITABLE if mask & selectors.EVENT_WRITE else 0)
                )
            except Exception:  # as asyncio does: an exception from here would end the loop
                logger.exception("callback of a socket failed fd=%s", key.fd)
        return ready

    def _register(self, fd: int, awaited: int) -> None:
        """Register a socket for exactly the events that its owner waits for."""
        wanted = (selectors.EVENT_READ if awaited & READABLE else 0) | (
            selectors.EVENT_WRITE if awaited & WRITABLE else 0
        )
        current = self._registered.get(fd, 0)
        if wanted == current:
            return
        if not current:
            self._selector.register(fd, wanted)
        elif wanted:
            self._selector.modify(fd, wanted)
        else:
            self._selector.unregister(fd)
        if wanted:
            self._registered[fd] = wanted
        else:
            del self._registered[fd]


def new_poller() -> Poller:
    """The best poller of this system."""
    if sys.platform == "linux" and hasattr(select, "epoll"):
        from broker.net.epoll_poller import EpollPoller

        return EpollPoller()
    return SelectorPoller()


class BrokerLoop(asyncio.SelectorEventLoop):
    """The event loop that listeners require."""

    def __init__(self) -> None:
        self.poller = new_poller()
        super().__init__(self.poller)


def running_poller() -> Poller:
    """The poller of the running loop, which must be a BrokerLoop."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, BrokerLoop):
        raise RuntimeError("a listener needs a BrokerLoop: asyncio.Runner(loop_factory=BrokerLoop)")
    return loop.poller
