"""The memory that large requests occupy, over all connections: `queued.max.request.bytes`.

Kafka reserves the whole size of a request before it reads it. Here bytes are counted as they
arrive, so that a client that announces a large request and sends little of it does not delay
others. When the limit is reached, connections in the middle of a large request are muted, except
the one whose request began first. So at least one request can always be completed, and the limit
is exceeded by at most one request.

Requests up to 256 KiB are not counted: a connection has a buffer of that order in any case.

Kafka's default, -1, means no limit, so that a client with many connections can exhaust the memory.
Here -1 means a quarter of the machine's memory (or of the container's, if that is less), but at
least two requests of the maximum size.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from broker.protocol.framing import FrameBuffer

_SHARE: Final = 4
"""One in this many bytes of the memory may be used by large requests, if no limit is set."""

_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class RequestMemory:
    """Implements `protocol.framing.FrameMemory`."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._used: dict[FrameBuffer, int] = {}
        """Bytes of each large request, unfinished or being processed, oldest first."""
        self._total_bytes = 0
        """Invariant: the sum of `_used`."""
        self._waiting: dict[FrameBuffer, Callable[[], object]] = {}
        """Callbacks of muted connections, in the order in which they began to wait."""

    @property
    def used_bytes(self) -> int:
        """What large requests occupy now."""
        return self._total_bytes

    @property
    def has_waiting(self) -> bool:
        """Whether connections are muted because the memory is exhausted."""
        return bool(self._waiting)

    def may_read(self, frames: FrameBuffer, num_bytes: int) -> bool:
        """Whether the large frame in `frames` may grow to `num_bytes`; counts them if so."""
        used = self._used.setdefault(frames, 0)
        total = self._total_bytes + num_bytes - used
        if total >= self.limit_bytes and next(iter(self._used)) is not frames:
            return False
        self._used[frames], self._total_bytes = num_bytes, total
        return True

    def wait(self, frames: FrameBuffer, on_memory: Callable[[], object]) -> None:
        """Call `on_memory` once, when memory has been released."""
        self._waiting[frames] = on_memory

    def release(self, frames: FrameBuffer) -> None:
        """The large frame in `frames` has been processed, or its connection was closed."""
        self._total_bytes -= self._used.pop(frames, 0)
        self._waiting.pop(frames, None)
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for on_memory in waiting.values():
                on_memory()


def default_limit_bytes(socket_request_max_bytes: int) -> int:
    """The limit where `queued.max.request.bytes` is -1; see the module."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        try:
            memory = min(memory, int(path.read_text()))
        except (OSError, ValueError):  # no such controller, or "max"
            continue
    return max(memory // _SHARE, 2 * socket_request_max_bytes)
