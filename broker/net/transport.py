"""Moves bytes between a connection and its socket.

A transport keeps what the socket did not take, and knows nothing of frames or states. `Transport`
is what a connection needs; `tls_transport` has the implementation with TLS.
"""

import socket
from collections import deque
from collections.abc import Callable
from itertools import islice, takewhile
from typing import Final, Protocol

from broker.protocol.framing import join
from broker.protocol.primitives import Buffer, FileSlice, Part
from broker.system_calls import sendfile

_MAX_PARTS: Final = 512
"""Buffers per sendmsg(2). The kernel takes up to 1024; half of that is no slower."""

_BYTES: Final = (bytes, bytearray, memoryview)

_COPY_BYTES: Final = 32 * 1024
"""A file slice below this size is read and copied: one system call together with the header costs
less than two without a copy. A whole response below this size is joined into one buffer."""

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
    """A TCP socket without encryption; sends file slices by sendfile, without a copy.

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
        if len(parts) > 1 and sum(map(len, parts)) < _COPY_BYTES:
            parts = [join(parts)]
        if unsent:
            self._keep(parts)
            return False
        if len(parts) == 1 and isinstance(whole := parts[0], _BYTES):
            # Most responses are one buffer that the socket takes at once: no queue for those.
            try:
                sent = self.socket.send(whole)
            except BlockingIOError:
                sent = 0
            if sent == len(whole):
                return True
            parts = [memoryview(whole)[sent:]]
        self._keep(parts)
        return self.flush()

    def _keep(self, parts: list[Part]) -> None:
        for part in parts:
            if not isinstance(part, _BYTES) and len(part) < _COPY_BYTES:
                part = part.read()
            self._unsent.append(part)

    def flush(self) -> bool:
        """See Transport."""
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
            return False
        return True

    def close(self) -> None:
        """See Transport."""
        self._unsent.clear()
        self._sent_of_first = 0
        self.socket.close()

    def _send_bytes(self, first: Buffer) -> int:
        """Send the bytes up to the next file slice, without those that have been sent."""
        unsent, begin = self._unsent, self._sent_of_first
        if len(unsent) > 1 and not isinstance(unsent[1], _BYTES) and not begin:
            return self.socket.send(first, _MORE)  # the head of a large fetch response
        waiting = islice(unsent, _MAX_PARTS)
        buffers = [part for part in takewhile(_is_buffer, waiting) if isinstance(part, _BYTES)]
        flags = _MORE if len(buffers) < len(unsent) else 0
        if begin:
            buffers[0] = memoryview(first)[begin:]
        return self.socket.sendmsg(buffers, (), flags)

    def _send_file(self, part: FileSlice) -> int:
        begin = self._sent_of_first
        length = len(part) - begin
        sent = sendfile(self.socket.fileno(), part.fileno(), part.position + begin, length)
        if not sent:
            raise OSError(f"a file ended {length} bytes before the response did")
        return sent


def _is_buffer(part: Part) -> bool:
    return isinstance(part, _BYTES)
