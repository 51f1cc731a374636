"""Moves bytes between a connection and its socket.

A transport keeps what the socket did not take, and knows nothing of frames or states. `Transport`
is what a connection needs; `tls_transport` has the implementation with TLS.
"""

import socket
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from broker.protocol.primitives import Buffer, FileSlice, Part
from broker.system_calls import sendfile

_MAX_PARTS: Final = 512
"""Buffers per sendmsg(2). The kernel takes up to 1024; half of that is no slower."""

_BYTES: Final = (bytes, bytearray, memoryview)

_COPIED_BYTES: Final = 128 * 1024
"""A file slice up to this size is read and copied: one system call for many parts costs less than
two for each (a header and a sendfile), and the copy less than what sendfile does per page."""

_JOINED_BYTES: Final = 32 * 1024
"""A whole response below this size is joined into one buffer: cheaper than to gather its parts."""

_GATHERED_BYTES: Final = 1024 * 1024
"""How much of one response is read from files before the socket has taken it."""

_MORE: Final[int] = getattr(socket, "MSG_MORE", 0)
"""More bytes follow at once: the client need not be woken for these. Only Linux has it."""


class Transport(Protocol):
    """One connected, non-blocking socket."""

    @property
    def read_into(self) -> Callable[[memoryview], int]:
        """Read into a buffer and return the number of bytes, 0 at the end of the stream.

        Less than the buffer takes means that no more bytes are available now. BlockingIOError if
        none are available; another OSError if the client is gone.
        """
        ...

    @property
    def has_unsent(self) -> bool:
        """Whether written bytes have not been sent."""
        ...

    def fileno(self) -> int:
        """The descriptor to poll for events."""
        ...

    def write(self, parts: list[Part]) -> bool:
        """Send as much as the socket takes, keep the rest; returns whether all was sent.

        OSError if the client is gone.
        """
        ...

    def flush(self) -> bool:
        """Send as much of the kept bytes as the socket takes; returns whether all was sent.

        OSError if the client is gone.
        """
        ...

    def close(self) -> None:
        """Close the socket and discard what is unsent."""
        ...


class PlainTransport:
    """A TCP socket without encryption; sends large file slices by sendfile, without a copy.

    Only EAGAIN means that the socket is full, and that the poller will report when it has room
    again. A write that took less than it was given means nothing: a signal may have cut it short.
    """

    def __init__(self, client: socket.socket) -> None:
        self.socket = client
        self.read_into: Callable[[memoryview], int] = client.recv_into
        self._unsent: deque[Part] = deque()
        self._sent_of_first = 0
        """Bytes of `_unsent[0]` that have been sent. Invariant: less than its length."""

    @property
    def has_unsent(self) -> bool:
        """See Transport."""
        return bool(self._unsent)

    def fileno(self) -> int:
        """See Transport."""
        return self.socket.fileno()

    def write(self, parts: list[Part]) -> bool:
        """See Transport."""
        unsent = self._unsent
        if unsent:
            unsent.extend(parts)
            return False
        if len(parts) > 1 and sum(map(len, parts)) < _JOINED_BYTES:
            parts = [
                b"".join([part if isinstance(part, _BYTES) else _read(part) for part in parts])
            ]
        if len(parts) == 1 and isinstance(whole := parts[0], _BYTES):
            # Most responses are one buffer that the socket takes at once: no queue for those.
            try:
                sent = self.socket.send(whole)
            except BlockingIOError:
                sent = 0
            if sent == len(whole):
                return True
            parts = [memoryview(whole)[sent:]]
        unsent.extend(parts)
        return self.flush()

    def flush(self) -> bool:
        """See Transport."""
        unsent = self._unsent
        try:
            while unsent:
                first = unsent[0]
                if isinstance(first, _BYTES) or len(first) <= _COPIED_BYTES:
                    sent = self._send_gathered()
                else:
                    sent = self._send_file(first)
                sent += self._sent_of_first
                while unsent and sent >= len(unsent[0]):
                    sent -= len(unsent.popleft())
                self._sent_of_first = sent
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """See Transport."""
        self._unsent.clear()
        self._sent_of_first = 0
        self.socket.close()

    def _send_gathered(self) -> int:
        """Send the parts up to the next large file slice together, without what has been sent.

        Small slices are read here, not before: a client that reads slowly costs little memory.
        """
        unsent, buffers, size = self._unsent, list[Buffer](), 0
        for index, part in enumerate(islice(unsent, _MAX_PARTS)):
            if not isinstance(part, _BYTES):
                if len(part) > _COPIED_BYTES:
                    break
                part = unsent[index] = _read(part)
            buffers.append(part)
            size += len(part)
            if size >= _GATHERED_BYTES:
                break
        flags = _MORE if len(buffers) < len(unsent) else 0
        if begin := self._sent_of_first:
            buffers[0] = memoryview(buffers[0])[begin:]
        if len(buffers) == 1:
            return self.socket.send(buffers[0], flags)
        return self.socket.sendmsg(buffers, (), flags)

    def _send_file(self, part: FileSlice) -> int:
        begin = self._sent_of_first
        length = len(part) - begin
        sent = sendfile(self.socket.fileno(), part.fileno(), part.position + begin, length)
        if not sent:
            raise OSError(f"a file ended {length} bytes before the response did")
        return sent


def _read(part: FileSlice) -> bytes:
    data = part.read()
    if len(data) < len(part):
        raise OSError(f"a file ended {len(part) - len(data)} bytes before the response did")
    return data
