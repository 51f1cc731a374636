"""Writes responses to a plaintext socket without copies: from where they lie, files by sendfile.

What the socket does not take waits here as it is: a slice of a file stays a slice.
"""

import os
import socket
from collections import deque
from itertools import islice, takewhile
from typing import Final

from broker.protocol.framing import join
from broker.protocol.primitives import Buffer, FileSlice, Part

_MAX_PARTS: Final = 512
"""The kernel takes 1024 buffers at once; half of it is no slower."""

_BYTES: Final = (bytes, bytearray, memoryview)

_READ_BYTES: Final = 32 * 1024
"""Slices below this are read: one system call with the header costs less than two without copy.
A whole response below this becomes one piece."""

_MORE: Final = socket.MSG_MORE
"""More follows at once: the client need not be woken for what is here yet."""


class Sender:
    """The way out of one connection.

    Only a refusal (EAGAIN) says that a socket is full and will be told of when it has room. A write
    that took less than it was given says nothing: a signal may have cut it short.
    """

    def __init__(self, client: socket.socket) -> None:
        self._socket = client
        self._unsent: deque[Part] = deque()
        self._sent_of_first = 0
        """Bytes of `_unsent[0]` that have gone. Invariant: less than its length."""

    @property
    def is_blocked(self) -> bool:
        """Whether something waits for the client to read."""
        return bool(self._unsent)

    def send(self, parts: list[Part]) -> None:
        """Write as much as the socket takes; OSError if the client is gone."""
        was_blocked = self.is_blocked
        if len(parts) > 1 and sum(map(len, parts)) < _READ_BYTES:
            parts = [join(parts)]
        if not was_blocked and len(parts) == 1 and self._is_written_at_once(parts):
            return
        for part in parts:
            if not isinstance(part, _BYTES) and len(part) < _READ_BYTES:
                part = part.read()
            self._unsent.append(part)
        if not was_blocked:
            self.push()

    def push(self) -> None:
        """Write until everything has gone or the socket is full; OSError as above."""
        unsent = self._unsent
        try:
            while unsent:
                first = unsent[0]
                if isinstance(first, _BYTES):
                    sent = self._send_bytes(first)
                else:
                    sent = self._send_file(first)
                sent += self._sent_of_first
                while unsent and sent >= len(unsent[0]):
                    sent -= len(unsent.popleft())
                self._sent_of_first = sent
        except BlockingIOError:
            return

    def clear(self) -> None:
        """Forget what was not sent."""
        self._unsent.clear()
        self._sent_of_first = 0

    def _is_written_at_once(self, parts: list[Part]) -> bool:
        """Whether a single part, as most answers are, has gone with one plain write.

        Otherwise `parts` is what is left. Spares small answers the queue.
        """
        part = parts[0]
        if not isinstance(part, _BYTES):
            return False
        try:
            sent = self._socket.send(part)
        except BlockingIOError:
            return False
        parts[0] = memoryview(part)[sent:]
        return sent == len(part)

    def _send_bytes(self, first: Buffer) -> int:
        """The bytes up to the next slice of a file, without what has gone."""
        unsent, begin = self._unsent, self._sent_of_first
        if len(unsent) > 1 and not isinstance(unsent[1], _BYTES) and not begin:
            return self._socket.send(first, _MORE)  # as the head of every large response is
        waiting = islice(unsent, _MAX_PARTS)
        buffers = [part for part in takewhile(_is_buffer, waiting) if isinstance(part, _BYTES)]
        flags = _MORE if len(buffers) < len(unsent) else 0
        if begin:
            buffers[0] = memoryview(first)[begin:]
        return self._socket.sendmsg(buffers, (), flags)

    def _send_file(self, part: FileSlice) -> int:
        begin = self._sent_of_first
        length = len(part) - begin
        sent = os.sendfile(self._socket.fileno(), part.fileno(), part.position + begin, length)
        if not sent:
            raise OSError(f"a file ended {length} bytes before a response did")
        return sent


def _is_buffer(part: Part) -> bool:
    return isinstance(part, _BYTES)
