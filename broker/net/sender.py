"""Writes responses to a plaintext socket without copies: writev for bytes, sendfile for files.

What the socket does not take waits here as it is: a slice of a file stays a slice. asyncio's own
transport would copy it into a buffer, so it is not asked; it keeps the socket for reading.
"""

import os
from collections import deque
from collections.abc import Callable
from itertools import islice, takewhile
from typing import Final

from broker.net.writers import Writers
from broker.protocol.primitives import Buffer, FileSlice, Part

_MAX_PARTS: Final = 512
"""writev takes 1024 buffers on Linux; half of it is no slower."""

_BYTES: Final = (bytes, bytearray, memoryview)

_READ_BYTES: Final = 32 * 1024
"""Slices below this are read: one system call with the header costs less than two without copy."""


class Sender:
    """The way out of one connection.

    `on_drained` is called when all that waited has gone, `on_failed` when it cannot go any more.
    """

    def __init__(
        self,
        fd: int,
        writers: Writers,
        on_drained: Callable[[], None],
        on_failed: Callable[[], None],
    ) -> None:
        self._fd = fd
        self._writers = writers
        self._on_drained = on_drained
        self._on_failed = on_failed
        self._unsent: deque[Part] = deque()
        self._sent_of_first = 0
        """Bytes of `_unsent[0]` that have gone. Invariant: less than its length."""

    @property
    def is_blocked(self) -> bool:
        """Whether something waits for the client to read."""
        return bool(self._unsent)

    def send(self, parts: list[Part]) -> None:
        """Write as much as the socket takes; OSError if the client is gone."""
        if not self._unsent and _is_written_at_once(self._fd, parts):
            return
        was_blocked = self.is_blocked
        self._unsent.extend(
            part.read() if not isinstance(part, _BYTES) and len(part) < _READ_BYTES else part
            for part in parts
        )
        if not was_blocked and not self._push():
            self._writers.watch(self._fd, self._on_room)

    def close(self) -> None:
        """Forget what was not sent, and whom to tell: no cycle shall keep a dead connection."""
        self._unsent.clear()
        self._on_drained = self._on_failed = _nobody
        self._writers.forget(self._fd)

    def _on_room(self) -> None:
        if not self._unsent:
            return
        try:
            if not self._push():
                return
        except OSError:
            on_failed = self._on_failed
            self.close()
            on_failed()
            return
        self._on_drained()

    def _push(self) -> bool:
        """Write until everything has gone or the socket is full; whether everything has.

        It is full when it took less than it was given: to ask again would only cost.
        """
        try:
            while self._unsent:
                first = self._unsent[0]
                if isinstance(first, _BYTES):
                    buffers = self._buffers()
                    offered, sent = sum(map(len, buffers)), os.writev(self._fd, buffers)
                else:
                    offered = len(first) - self._sent_of_first
                    sent = self._send_file(first, offered)
                self._consume(sent)
                if sent < offered:
                    return False
        except BlockingIOError:
            return False
        return True

    def _buffers(self) -> list[Buffer]:
        """The bytes up to the next slice of a file, without what has gone."""
        waiting = islice(self._unsent, _MAX_PARTS)
        buffers = [part for part in takewhile(_is_buffer, waiting) if isinstance(part, _BYTES)]
        if self._sent_of_first:
            buffers[0] = memoryview(buffers[0])[self._sent_of_first :]
        return buffers

    def _send_file(self, part: FileSlice, length: int) -> int:
        position = part.position + self._sent_of_first
        sent = os.sendfile(self._fd, part.fileno(), position, length)
        if not sent:
            raise OSError(f"a file ended {length} bytes before a response did")
        return sent

    def _consume(self, count: int) -> None:
        count += self._sent_of_first
        while self._unsent and count >= len(self._unsent[0]):
            count -= len(self._unsent.popleft())
        self._sent_of_first = count


def _is_written_at_once(fd: int, parts: list[Part]) -> bool:
    """Whether a single part, as most answers are, has gone with one plain write.

    Otherwise `parts` is what is left. Spares small answers the queue: 5 µs of the 100 per request.
    """
    part = parts[0]
    if len(parts) > 1 or not isinstance(part, _BYTES):
        return False
    try:
        sent = os.write(fd, part)
    except BlockingIOError:
        return False
    parts[0] = memoryview(part)[sent:]
    return sent == len(part)


def _nobody() -> None:
    """Nobody is left to be told."""


def _is_buffer(part: Part) -> bool:
    return isinstance(part, _BYTES)
