"""Runs the TLS handshake of an accepted connection, without stalling the event loop.

A handshake costs the broker up to a millisecond of computing (the signature with its private key).
It is done by a thread: OpenSSL releases the GIL meanwhile, so that a storm of new connections does
not delay the requests of those that exist. The bytes are moved by the event loop; while the thread
computes, nothing is read.
"""

import asyncio
import ssl
from collections.abc import Callable
from concurrent.futures import Executor

from broker.net.tls_transport import TlsTransport


class TlsHandshake:
    """One handshake. Calls `on_done` once: with None, or with the error that ended it."""

    def __init__(
        self,
        transport: TlsTransport,
        executor: Executor,
        on_done: Callable[[OSError | None], None],
    ) -> None:
        self._transport = transport
        self._executor = executor
        self._on_done = on_done
        self.is_computing = False
        """Whether a thread works on the handshake; nothing is read or sent meanwhile."""
        self._is_over = False

    def advance(self) -> None:
        """Move the bytes that have arrived; to be called at each event of the socket."""
        if self.is_computing or self._is_over:
            return
        try:
            self._transport.flush()
            self._transport.receive()
        except BlockingIOError:
            return
        except OSError as error:
            self._end(error)
            return
        self.is_computing = True
        step = asyncio.get_running_loop().run_in_executor(self._executor, self._transport.step)
        step.add_done_callback(self._on_step)

    def abandon(self) -> None:
        """The connection was closed."""
        self._is_over = True

    def _on_step(self, step: "asyncio.Future[bool]") -> None:
        self.is_computing = False
        if self._is_over or step.cancelled():
            return
        error = step.exception()
        try:
            self._transport.flush()  # the next message, or the alert that says what went wrong
        except OSError as lost:
            error = error or lost
        if error is not None:
            self._end(error if isinstance(error, OSError) else OSError(str(error)))
        elif step.result():
            self._end(None)
        else:
            self.advance()  # events that came meanwhile are not repeated

    def _end(self, error: OSError | None) -> None:
        self._is_over = True
        self._on_done(error)


def reason_of(error: OSError) -> str:
    """Why a handshake failed, in one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error)
