"""A TCP socket with TLS; see `Transport`.

OpenSSL works on memory (SSLObject and MemoryBIO), and the socket is read and written here: so it
stays non-blocking and edge-triggered, and one system call moves 256 KB. `ssl.SSLSocket` would need
one for each TLS record of 16 KB, which costs a third of the throughput.

The handshake is done in steps: `receive` and `flush` move its bytes, `step` computes. It
touches nothing but memory and may run in a thread while no other method is called.
"""

import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from broker.protocol.primitives import Part
from broker.system_calls import preadv

_PASS_BYTES: Final = 256 * 1024
"""So much is encrypted before it is sent, and received before it is decrypted."""

_BYTES: Final = (bytes, bytearray, memoryview)

_scratch: Final = memoryview(bytearray(_PASS_BYTES))
"""Ciphertext just received, or plaintext about to be encrypted. All transports share it: it is used
within one call only, and all calls are made by the thread of the event loop."""


class TlsTransport:
    """One connected, non-blocking socket, encrypted.

    Field `_parts`: plaintext that is not encrypted yet.
    Field `_done_of_first`: bytes of `_parts[0]` that are encrypted; less than its length.
    Field `_encrypted`: ciphertext that the socket did not take.
    """

    def __init__(self, client: socket.socket, context: ssl.SSLContext) -> None:
        self.socket = client
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        # Called once per TLS record, and librdkafka sends many small ones. ssl.SSLObject.read is a
        # Python method around this one.
        inner: Any = getattr(self._tls, "_sslobj", self._tls)
        self._decrypt: Callable[[int, memoryview], int] = inner.read
        self._parts: deque[Part] = deque()
        self._done_of_first = 0
        self._encrypted = memoryview(b"")
        self._is_ready = False
        """Whether the handshake is complete."""

    # --- the handshake ----------------------------------------------------------------------------

    def receive(self) -> None:
        """Take bytes from the socket, for `step`; BlockingIOError if none are available.

        ConnectionResetError if the client is gone.
        """
        count = self.socket.recv_into(_scratch)
        if not count:
            raise ConnectionResetError("the client closed the connection")
        self._incoming.write(_scratch[:count])

    def step(self) -> bool:
        """Continue the handshake; returns whether it is complete. ssl.SSLError if it has failed."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._is_ready = True
        return True

    def peer_certificate(self) -> bytes | None:
        """The client's certificate in DER, verified; None if it has none."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def protocol(self) -> str:
        """Protocol and cipher suite, for logs."""
        cipher = self._tls.cipher()
        return f"{self._tls.version()} {cipher[0] if cipher else ''}"

    # --- the interface of a transport -------------------------------------------------------------

    @property
    def has_unsent(self) -> bool:
        """See Transport."""
        return bool(self._encrypted) or bool(self._parts)

    def fileno(self) -> int:
        """See Transport."""
        return self.socket.fileno()

    def read_into(self, room: memoryview) -> int:
        """See Transport. Fills the whole room, unless the socket has no more bytes.

        OpenSSL is not called while it has nothing to decrypt, nor the socket once it is drained:
        both would raise an exception for each request.
        """
        incoming, decrypt, size = self._incoming, self._decrypt, len(room)
        count, is_drained = 0, False
        while count < size:
            if not incoming.pending and not self._tls.pending():
                if is_drained or not (received := self._receive(is_needed=not count)):
                    break
                is_drained = received < _PASS_BYTES
            try:
                found = decrypt(size - count, room[count:])
            except ssl.SSLWantReadError:  # the rest of a record has not arrived
                received = self._receive(is_needed=not count)
                if not received:
                    break
                is_drained = received < _PASS_BYTES
                continue
            except ssl.SSLZeroReturnError:  # the client has said that it sends no more
                break
            if not found:
                break
            count += found
        if self._outgoing.pending:  # new keys, for example
            self.flush()
        return count

    def _receive(self, *, is_needed: bool) -> int:
        """Receive more, and return how much; BlockingIOError, or 0 unless it is needed, if none."""
        try:
            received = self.socket.recv_into(_scratch)
        except BlockingIOError:
            if is_needed:
                raise
            return 0
        if received:
            self._incoming.write(_scratch[:received])
        else:
            self._incoming.write_eof()
        return received

    def write(self, parts: list[Part]) -> bool:
        """See Transport."""
        self._parts.extend(part for part in parts if len(part))
        return self.flush()

    def flush(self) -> bool:
        """See Transport."""
        try:
            while True:
                while self._encrypted or self._outgoing.pending:
                    if not self._encrypted:
                        self._encrypted = memoryview(self._outgoing.read())
                    self._encrypted = self._encrypted[self.socket.send(self._encrypted) :]
                if not self._parts:
                    return True
                self._encrypt()
        except BlockingIOError:
            return False

    def _encrypt(self) -> None:
        """Encrypt as much as is sent at once; parts are collected to fill the TLS records."""
        plain = _scratch[: self._collect()]
        while plain:
            plain = plain[self._tls.write(plain) :]

    def _collect(self) -> int:
        """Move the next bytes to the scratch buffer and return how many."""
        count = 0
        while self._parts and count < _PASS_BYTES:
            first, begin = self._parts[0], self._done_of_first
            length = min(len(first) - begin, _PASS_BYTES - count)
            room = _scratch[count : count + length]
            if isinstance(first, _BYTES):
                room[:] = memoryview(first)[begin : begin + length]
            else:
                length = preadv(first.fileno(), [room], first.position + begin)
                if not length:
                    raise OSError("a file ended before the response did")
            count += length
            self._done_of_first = begin + length
            if self._done_of_first == len(first):
                self._parts.popleft()
                self._done_of_first = 0
        return count

    def close(self) -> None:
        """See Transport. Sends close_notify if the socket takes it, so that the client sees no
        truncation."""
        if self._is_ready and not self.has_unsent:
            with suppress(OSError):
                self._tls.unwrap()
            with suppress(OSError):
                self.flush()
        self._parts.clear()
        self._encrypted = memoryview(b"")
        self.socket.close()
