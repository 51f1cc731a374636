"""One client's connection: frames in, answers out, strictly in order, one at a time.

    poller → read → next_frame → answer(frame) → parts → sender → socket
                                      ↓ not yet
                            do not read, await it, go on

While an answer is awaited, or the client does not read what it was sent, nothing more is read from
it: what it goes on sending waits in the kernel, and then in the client. So a connection holds at
most one request, one response and one read, whatever the client does. (Kafka mutes its channels
likewise.)
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from broker.net.later import Done, Later, as_later
from broker.net.poller import AT_END, GONE, READABLE, WRITABLE, Poller
from broker.net.sender import Sender
from broker.protocol.errors import DecodeError
from broker.protocol.framing import FrameBuffer
from broker.protocol.primitives import Part

logger = logging.getLogger(__name__)

_SMALL_BYTES = 4096
"""Answers up to this wait for the next ones, as long as requests are there to be answered."""

_READS_PER_TURN = 5
_REQUESTS_PER_TURN = 5
"""So often one connection is read, and so many requests are enough, before others have their turn:
a read can hold thousands of small ones."""


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


class Connection:
    """See the module. `on_lost` is called once, when the connection is gone."""

    def __init__(
        self,
        client: socket.socket,
        peer: Peer,
        answerer: Answerer,
        poller: Poller,
        max_frame_bytes: int,
        on_lost: Callable[["Connection"], None],
    ) -> None:
        self.peer = peer
        self.socket = client
        self._answerer = answerer
        self._poller = poller
        self._frames = FrameBuffer(max_frame_bytes)
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self.last_active_s = self._loop.time()
        """The loop's time when bytes last came or went: idle connections are closed by it."""
        self._sender = Sender(client)
        self._answered = bytearray()
        """Small answers that wait for those to requests that came soon after theirs."""
        self._has_more = False
        """Whether the kernel may have bytes for us. Invariant: where it is False we are told."""
        self._sends_much = False
        """Whether requests come so fast that while one is answered the next is likely to come."""
        self._is_at_end = False
        """Whether the client has said all that it will. Its last requests may not be read yet."""
        self._closes_when_sent = False
        self._is_closed = False
        self._awaiting: Done | None = None
        """The answer under way. Invariant: while it is, no frame is taken from the buffer."""

    def start(self) -> None:
        """Serve the client from now on; OSError if that cannot be."""
        self._poller.watch(self.socket.fileno(), self._on_ready)

    def close(self) -> None:
        """Close after what was written has gone out."""
        if self._sender.is_blocked:
            self._closes_when_sent = True
        else:
            self.abort()

    def abort(self) -> None:
        """Close now."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._awaiting is not None:
            self._awaiting.cancel()
        self._sender.clear()
        self._poller.forget(self.socket.fileno())
        self.socket.close()
        self._on_lost(self)

    def shrink(self) -> None:
        """Give back the memory of large frames; for connections that have gone quiet."""
        if self._awaiting is None:
            self._frames.shrink()

    # --- what the kernel tells -------------------------------------------------------------------

    def _on_ready(self, events: int) -> None:
        if events & (AT_END | GONE):
            self._is_at_end = True
        if events & (READABLE | AT_END | GONE):
            self._has_more = True  # bytes, or the end
        try:
            if self._sender.is_blocked and events & (WRITABLE | GONE):
                self._push()
            elif events & GONE and self._awaiting is not None:
                self.abort()  # nobody is there to read the answer
            elif self._has_more:
                self._go_on()
        except Exception as error:  # noqa: BLE001  # the fence: it is not told again
            self._close_because(error)

    def _push(self) -> None:
        """Write what waits, now that there is room."""
        try:
            self._sender.push()
        except OSError:  # the client is gone
            self.abort()
            return
        self.last_active_s = self._loop.time()
        if self._sender.is_blocked:
            return
        if self._closes_when_sent:
            self.abort()
        else:
            self._go_on()

    def _read(self) -> bool:
        """Read what has come; whether there was something."""
        room = self._frames.writable()
        try:
            count = self.socket.recv_into(room)
        except BlockingIOError:
            self._has_more = self._sends_much = False
            return False
        except OSError:  # the client is gone
            count = 0
        if not count:
            self._send_answered()
            self.close()
            return False
        self._frames.wrote(count)
        # Less than there was room for was all that there was, but for the news of the end.
        self._has_more = count == len(room) or self._is_at_end
        return True

    # --- answering -------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Answer what is here and what comes meanwhile; small answers go together at the end.

        To wake the client once for several costs both sides a fraction of waking it for each.
        """
        self.last_active_s = self._loop.time()
        try:
            answered = self._answer_frames() if self._frames.has_bytes else 0
            for _ in range(_READS_PER_TURN):
                if not self._may_read or answered >= _REQUESTS_PER_TURN or not self._read():
                    break
                count = self._answer_frames()
                answered += count
                if count > 1:
                    self._sends_much = True
                # To look costs less than to be told, where there is something; else it delays.
                self._has_more = self._has_more or (self._sends_much and count > 0)
            self._send_answered()
        except Exception as error:  # noqa: BLE001  # the fence
            self._send_answered()
            self._close_because(error)
        if self._may_read:  # enough for one turn
            self._loop.call_soon(self._maybe_go_on)

    @property
    def _may_go_on(self) -> bool:
        return self._awaiting is None and not self._is_closed and not self._sender.is_blocked

    @property
    def _may_read(self) -> bool:
        return self._has_more and self._may_go_on

    def _maybe_go_on(self) -> None:
        if self._may_go_on:
            self._go_on()

    def _answer_frames(self) -> int:
        """Answer whole frames for as long as answers come at once and the client reads them.

        How many were answered. Small answers are left in `_answered`.
        """
        count = 0
        while (
            self._awaiting is None
            and not self._sender.is_blocked
            and not self._is_closed
            and (frame := self._frames.next_frame()) is not None
        ):
            count += 1
            answer = self._answerer(frame, self.peer)
            if answer is None:
                continue
            if not isinstance(answer, list):
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

    def _finish(self, later: Later[Answer], done: Done) -> None:
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
        self.last_active_s = self._loop.time()
        if self._has_more or self._frames.has_bytes:
            # Not now: it may be in the middle of another client's request that this one is let go.
            self._loop.call_soon(self._maybe_go_on)

    def _send_answered(self) -> None:
        """Write the small answers that wait."""
        if self._answered:
            answered, self._answered = self._answered, bytearray()
            self._send([answered])

    def _send(self, parts: Answer) -> None:
        """Write a response, as far as the client reads it."""
        if not parts or self._is_closed:
            return
        try:
            self._sender.send(parts)
        except OSError:  # the client is gone
            self.abort()
