"""One client's connection: frames in, answers out, strictly in order, one at a time.

    buffer_updated → next_frame → answer(frame) → parts → socket
                                        ↓ not yet
                              stop reading, await it, go on

While an answer is awaited nothing more is read from the client, and while it does not read what it
was sent, nothing more after the first bytes that it sends nevertheless: what it goes on sending
waits in the kernel, and then in the client. So a connection holds at most one request, one response
and one read, whatever the client does. (Kafka mutes its channels likewise.)
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from broker.net.later import Later, as_later
from broker.net.sender import Sender
from broker.net.writers import Writers
from broker.protocol.errors import DecodeError
from broker.protocol.framing import FrameBuffer
from broker.protocol.primitives import Part

logger = logging.getLogger(__name__)

_SMALL_BYTES = 4096
"""Answers up to this wait for the next ones, as long as requests are there to be answered."""

_MORE_READS = 4
_REQUESTS_PER_TURN = 5
"""So often one connection is read again, and so many requests are enough, before others have their
turn: a read can hold thousands of small ones."""


class Peer(NamedTuple):
    """Who is at the other end, and through which listener it came."""

    host: str
    port: int
    listener_name: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class CloseConnection(Exception):
    """The only fitting answer is to close; the text goes to the log."""


Answer = list[Part] | None
"""The parts of a response frame; None when the request gets none (produce with acks=0)."""

Answerer = Callable[[memoryview, Peer], Answer | Awaitable[Answer]]
"""Answers one request frame, at once where nothing has to be waited for.

The frame is valid until the answer is there. DecodeError and CloseConnection end the connection.
"""


class Connection(asyncio.BufferedProtocol):
    """See the module. `on_lost` is called once, when the connection is gone."""

    def __init__(
        self,
        peer: Peer,
        answerer: Answerer,
        writers: Writers,
        max_frame_bytes: int,
        on_lost: Callable[["Connection"], None],
    ) -> None:
        self.peer = peer
        self.last_active_s = 0.0
        """The loop's time when bytes last came or went: idle connections are closed by it."""
        self._answerer = answerer
        self._writers = writers
        self._frames = FrameBuffer(max_frame_bytes)
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._fd: int
        self._sender: Sender
        self._answered = bytearray()
        """Small answers that wait for those to requests that came soon after theirs."""
        self._closes_when_sent = False
        self._is_at_end = False
        """Whether the client has said all that it will, and waits for what is not answered yet."""
        self._awaiting: asyncio.Future[Any] | None = None
        """The answer under way. Invariant: while it is, no frame is taken from the buffer."""

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio's protocol."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self._transport = transport
        self._fd = transport.get_extra_info("socket").fileno()
        self._sender = Sender(self._fd, self._writers, self._drained, self.abort)
        self.last_active_s = self._loop.time()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Part of asyncio's protocol."""
        return self._frames.writable()

    def buffer_updated(self, nbytes: int) -> None:
        """Part of asyncio's protocol."""
        self.last_active_s = self._loop.time()
        self._frames.wrote(nbytes)
        if self._sender.is_blocked:
            # Not sooner: few send more before they have read, and to pause is not cheap.
            self._transport.pause_reading()
        else:
            self._serve()

    def eof_received(self) -> bool:
        """Part of asyncio's protocol: whether to stay open."""
        self._is_at_end = self._sender.is_blocked
        return self._is_at_end

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's protocol."""
        if self._awaiting is not None:
            self._awaiting.cancel()
        self._sender.close()
        self._on_lost(self)

    # ours

    def close(self) -> None:
        """Close after what was written has gone out."""
        if self._sender.is_blocked:
            self._closes_when_sent = True
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    def shrink(self) -> None:
        """Give back the memory of large frames; for connections that have gone quiet."""
        if self._awaiting is None:
            self._frames.shrink()

    def _serve(self, more_reads: int = _MORE_READS) -> None:
        """Answer what has come and what comes meanwhile; small answers go together at the end.

        To wake the client once for several costs both sides a fraction of waking it for each.
        """
        try:
            answered = self._answer_frames()
            for _ in range(more_reads):
                if answered >= _REQUESTS_PER_TURN or not self._read_more():
                    break
                answered += self._answer_frames()
            self._send_answered()
        except Exception as error:  # noqa: BLE001  # the fence
            self._send_answered()
            self._close_because(error)

    def _read_more(self) -> bool:
        """Read what came while requests were answered: a producer sends without pause.

        Past asyncio, whose loop and transport cost 15 µs more for each request. An error or the
        end of the stream is left to them: they find it again.
        """
        if self._awaiting or self._sender.is_blocked or self._transport.is_closing():
            return False
        try:
            count = os.readv(self._fd, [self._frames.writable()])
        except OSError:
            return False
        self._frames.wrote(count)
        return count > 0

    def _answer_frames(self) -> int:
        """Answer whole frames for as long as answers come at once and the client reads them.

        How many were answered. Small answers are left in `_answered`.
        """
        count = 0
        while not self._sender.is_blocked and (frame := self._frames.next_frame()) is not None:
            if self._transport.is_closing():
                break
            count += 1
            answer = self._answerer(frame, self.peer)
            if answer is None:
                continue
            if not isinstance(answer, list):
                self._transport.pause_reading()
                self._wait_for(as_later(answer))
                break
            head = answer[0]
            if isinstance(head, bytearray) and len(answer) == 1 and len(head) <= _SMALL_BYTES:
                self._answered += head
                if len(self._answered) > _SMALL_BYTES:
                    self._send_answered()
            else:
                self._send_answered()
                self._send(answer)
        return count

    def _close_because(self, error: Exception) -> None:
        """Close: there will be no answer, and the client would take the next one for it."""
        if isinstance(error, DecodeError | CloseConnection):
            logger.warning("closing connection peer=%s reason=%s", self.peer, error)
        else:  # a fault of ours that the handler's fence could not answer
            logger.error("closing connection peer=%s", self.peer, exc_info=error)
        self.abort()

    def _wait_for(self, later: Later[Answer]) -> None:
        self._awaiting = later.done
        later.done.add_done_callback(partial(self._finish, later))

    def _finish(self, later: Later[Answer], done: "asyncio.Future[Any]") -> None:
        if done.cancelled():  # the client has gone
            return
        try:
            answer = later.answer()
            if isinstance(answer, Later):  # it waits for something else now
                self._wait_for(answer)
                return
            self._send(answer)
        except Exception as error:  # noqa: BLE001  # the fence
            self._close_because(error)
        self._awaiting = None
        self._go_on()

    def _drained(self) -> None:
        """The client has read what it was sent."""
        self.last_active_s = self._loop.time()
        if self._closes_when_sent:
            self._transport.close()
        elif self._awaiting is None:
            self._go_on()

    def _go_on(self) -> None:
        """Answer what was left when an answer had to wait, and what came since."""
        if self._sender.is_blocked or self._transport.is_closing():
            return
        was_reading = self._transport.is_reading()
        self._transport.resume_reading()
        self._serve(0 if was_reading else _MORE_READS)
        if self._is_at_end and self._awaiting is None and not self._sender.is_blocked:
            self._transport.close()

    def _send_answered(self) -> None:
        """Write the small answers that wait."""
        if self._answered:
            answered, self._answered = self._answered, bytearray()
            self._send([answered])

    def _send(self, parts: Answer) -> None:
        """Write a response, as far as the client reads it."""
        if not parts or self._transport.is_closing():
            return
        self.last_active_s = self._loop.time()
        try:
            self._sender.send(parts)
        except OSError:  # the client is gone
            self.abort()
