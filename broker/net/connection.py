"""One client's connection: frames in, responses out, strictly in order, one at a time.

    poller → read → next_frame → answer(frame) → parts → transport → socket
                                      ↓ deferred
                         stop reading until the response is there

The states and their transitions are in `connection_state`; this module is the I/O around them. It
holds at most one request, one response and one read per connection, whatever the client does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, cast

from broker.net.connection_state import ConnectionState, Event, State
from broker.net.deferred import Completion, DeferredResponse, as_deferred
from broker.net.listener_security import ListenerSecurity
from broker.net.poller import AT_END, GONE, READABLE, WRITABLE, Poller
from broker.net.request_memory import RequestMemory
from broker.net.sasl_stage import ANSWER_AS_USUAL, SaslStage
from broker.net.tls_handshake import TlsHandshake, reason_of
from broker.net.tls_transport import TlsTransport
from broker.net.transport import Transport
from broker.protocol.errors import DecodeError
from broker.protocol.framing import FrameBuffer
from broker.protocol.primitives import Part
from broker.security.principal import ANONYMOUS, KafkaPrincipal
from broker.security.sasl_server_authenticator import Session

logger = logging.getLogger(__name__)

_SMALL_BYTES: Final = 4096
"""Responses up to this size are collected while further requests are there to be processed."""

_READS_PER_TURN: Final = 5
_REQUESTS_PER_TURN: Final = 5
"""A connection is read this often, and no further after this many requests, before others have
their turn: one read can bring thousands of small requests."""

_MIN_PROGRESS_BYTES: Final = 1024 * 1024
_PROGRESS_INTERVAL_S = 30.0
"""While others wait for memory, a large request must grow by this much in this time."""

_BYTES_OR_END: Final = READABLE | AT_END | GONE
_END: Final = AT_END | GONE


class Peer(NamedTuple):
    """The client's address, the listener that it connected to, and who it is."""

    host: str
    port: int
    listener_name: str
    principal: KafkaPrincipal = ANONYMOUS
    """Replaced when the client has authenticated."""
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class CloseConnection(Exception):
    """The request can only be answered by closing the connection; the text goes to the log."""


ResponseParts = list[Part] | None
"""The parts of a response frame; None if the request gets no response (produce with acks=0)."""


class TrackedResponse(list[Part]):
    """A response that reports when the socket has all of it; empty if the request gets none."""

    on_sent: Callable[[], None] | None = None
    """Called once; not if the connection is closed before."""


class ThrottledResponse(TrackedResponse):
    """A response after which the connection is muted."""

    def __init__(self, parts: Iterable[Part], throttle_s: float) -> None:
        super().__init__(parts)
        self.throttle_s = throttle_s


RequestHandler = Callable[[memoryview, Peer], ResponseParts | Awaitable[ResponseParts]]
"""Processes one request frame, and returns the response or an awaitable of it.

The frame is valid until the response is there. DecodeError and CloseConnection close the
connection.
"""


class ConnectionContext(NamedTuple):
    """What all connections of a listener share."""

    handle_request: RequestHandler
    poller: Poller
    socket_request_max_bytes: int
    request_memory: RequestMemory
    on_closed: Callable[["Connection"], None]
    """Called once, when a connection is closed."""
    security: ListenerSecurity


class Connection:
    """See the module."""

    def __init__(self, transport: Transport, peer: Peer, context: ConnectionContext) -> None:
        self.peer = peer
        self.transport = transport
        self._context = context
        self._handle_request = context.handle_request
        self._read_into = transport.read_into
        self._frames = FrameBuffer(context.socket_request_max_bytes, context.request_memory)
        self._state = ConnectionState(
            needs_handshake=isinstance(transport, TlsTransport),
            needs_authentication=context.security.new_authenticator is not None,
        )
        self._loop = asyncio.get_running_loop()
        self.last_active_s = self._loop.time()
        """When bytes last came or went, in the loop's time: idle connections are closed by it."""
        self._small_responses = bytearray()
        """Small responses that are not written yet, because more requests are being processed."""
        self._is_readable = False
        """Whether the kernel may have bytes, or the end. Events are edge-triggered: it stays True
        until a read finds nothing, also while nothing may be read."""
        self._is_at_end = False
        """Whether the client has sent its last byte. Its last requests may not have been read."""
        self._pipelines = False
        """Whether requests come so fast that the next one is likely to arrive while one is
        processed."""
        self._completion: Completion | None = None
        """What a deferred response waits for. Invariant: None unless RESPONDING."""
        self._on_sent: Callable[[], None] | None = None
        """Reports that the unsent response has been sent; None if that is not measured."""
        self._throttle_timer: asyncio.TimerHandle | None = None
        """Ends the muting of a throttled client."""
        self._progress = (0, self.last_active_s)
        """How many bytes of a large request were here when it was last checked that it makes
        progress, and since when it has made too little."""
        self._handshake: TlsHandshake | None = None
        """Invariant: set while HANDSHAKING."""
        self._stage: SaslStage | None = None
        """Invariant: set if the listener has SASL."""
        self._set_up_security(transport, context.security)

    def _set_up_security(self, transport: Transport, security: ListenerSecurity) -> None:
        if isinstance(transport, TlsTransport):
            assert security.executor is not None  # noqa: S101
            self._handshake = TlsHandshake(transport, security.executor, self._on_handshake_done)
        if security.new_authenticator is not None:
            self._stage = SaslStage(
                security.new_authenticator, self, security.failed_authentication_delay_s
            )
            self._expect_authentication()

    def start(self) -> None:
        """Serve the client from now on; OSError if its socket cannot be polled."""
        self._context.poller.watch(self.transport.fileno(), self._on_ready, self._awaited)

    def close(self) -> None:
        """Close after what was written has been sent."""
        self._state.on(Event.CLOSE)
        self._abandon_request()
        if not self.transport.has_unsent:
            self.abort()

    def abort(self) -> None:
        """Close now."""
        if self._state.current is not State.CLOSED:
            self._state.on(Event.LOST)
            self._release()

    @property
    def has_request_in_progress(self) -> bool:
        """Whether a response is awaited or has not been sent completely."""
        return self._state.current is State.RESPONDING or self.transport.has_unsent

    def shrink(self) -> None:
        """Free the memory of large frames; for connections that are quiet."""
        if self._completion is None:
            self._frames.shrink()

    def maybe_close_slow(self, now_s: float) -> None:
        """Close if a large request has arrived too slowly; for when others wait for memory.

        A connection that may not be read now is exempt.
        """
        num_bytes, since_s = self._progress
        received = self._frames.num_unread
        is_receiving = self._frames.is_counted and self._state.may_read
        if not is_receiving or not 0 <= received - num_bytes < _MIN_PROGRESS_BYTES:
            self._progress = (received, now_s)
        elif now_s - since_s >= _PROGRESS_INTERVAL_S:
            logger.warning(
                "closing connection peer=%s reason=request too slow while others wait for memory "
                "received=%s",
                self.peer,
                received,
            )
            self.abort()

    # --- events of the socket ---------------------------------------------------------------------

    def _on_ready(self, events: int) -> None:
        if events & _BYTES_OR_END:
            self._is_readable = True
            if events & _END:
                self._is_at_end = True
        try:
            if self._state.may_read:
                if self._is_readable:
                    self._serve()
            elif self._state.current is State.HANDSHAKING:
                self._on_handshake_event()
            elif events & (WRITABLE | GONE) and self.transport.has_unsent:
                self._flush()
            elif events & GONE:
                self.abort()  # no client is left to read the response
        except Exception as error:  # noqa: BLE001  # the fence: the event is not repeated
            self._close_because(error)

    def _awaited(self) -> int:
        """The events that this connection waits for; see Poller."""
        if self._handshake is not None:
            if self._handshake.is_computing:
                return 0
            return READABLE | (WRITABLE if self.transport.has_unsent else 0)
        is_blocked = self.transport.has_unsent and not self._state.may_read
        return (0 if self._is_readable else READABLE) | (WRITABLE if is_blocked else 0)

    def _flush(self) -> None:
        """Send what is unsent, now that the socket has room."""
        try:
            is_drained = self.transport.flush()
        except OSError:  # the client is gone
            self.abort()
            return
        self.last_active_s = self._loop.time()
        if not is_drained:
            return
        self._report_sent()
        if self._state.on(Event.SOCKET_DRAINED) is State.CLOSED:
            self._release()
        elif self._state.may_read:
            self._serve()

    def _read(self) -> bool:
        """Read what has arrived; returns whether there was anything."""
        room = self._frames.writable()
        if not room:
            self._state.on(Event.MUTE)
            self._context.request_memory.wait(self._frames, self._unmute)
            return False
        try:
            count = self._read_into(room)
        except BlockingIOError:
            self._is_readable = self._pipelines = False
            return False
        except OSError:  # the client is gone
            count = 0
        if not count:
            self._write_small_responses()
            self.close()
            return False
        self._frames.wrote(count)
        # Fewer bytes than fit were all that was available, except perhaps the end of the stream.
        self._is_readable = count == len(room) or self._is_at_end
        return True

    def _throttle(self, delay_s: float) -> None:
        """Read nothing for a while: the client has exceeded a quota, and has its response."""
        if self._state.current not in (State.CLOSING, State.CLOSED):
            self._state.on(Event.MUTE)
            self._throttle_timer = self._loop.call_later(delay_s, self._unmute)

    def _unmute(self) -> None:
        if self._state.current is not State.MUTED:
            return  # it is being closed
        self._state.on(Event.UNMUTE)
        if self.transport.has_unsent:
            self._state.on(Event.SOCKET_FULL)
        else:
            self._loop.call_soon(self._maybe_serve)

    # --- TLS and SASL -----------------------------------------------------------------------------

    def _on_handshake_event(self) -> None:
        assert self._handshake is not None  # noqa: S101
        self.last_active_s = self._loop.time()
        self._handshake.advance()

    def _on_handshake_done(self, error: OSError | None) -> None:
        if self._state.current is not State.HANDSHAKING:
            return  # it is being closed
        assert isinstance(self.transport, TlsTransport)  # noqa: S101
        self._handshake = None
        try:
            if error is not None:
                raise error
            principal = self._context.security.principal_of(self.transport.peer_certificate())
        except (OSError, ValueError) as problem:
            self._fail_handshake(problem)
            return
        self.peer = self.peer._replace(principal=principal)
        self._state.on(Event.TRANSPORT_READY)
        if self.transport.has_unsent:
            self._state.on(Event.SOCKET_FULL)
        self._is_readable = True  # the first request may have come with the last message
        self._maybe_serve()

    def _fail_handshake(self, problem: OSError | ValueError) -> None:
        """Close after the delay; the alert that says why is on its way."""
        if isinstance(problem, ConnectionError):  # gone, or a probe of the port
            logger.debug("TLS handshake was aborted peer=%s", self.peer)
            self.abort()
            return
        reason = reason_of(problem) if isinstance(problem, OSError) else problem
        self._log_failure(f"SSL handshake failed: {reason}")
        self._state.on(Event.CLOSE)
        self._loop.call_later(self._context.security.failed_authentication_delay_s, self.abort)

    def _log_failure(self, reason: str) -> None:
        logger.info(
            "Failed authentication peer=%s listener=%s reason=%s",
            self.peer,
            self.peer.listener_name,
            reason,
        )

    def _expect_authentication(self) -> None:
        """Give frames to the authenticator, and accept no large ones."""
        assert self._stage is not None  # noqa: S101
        self._handle_request = self._authenticate
        limit = self._context.socket_request_max_bytes
        self._frames.max_frame_bytes = min(limit, self._stage.max_receive_bytes)

    def _authenticate(
        self, frame: memoryview, peer: Peer
    ) -> ResponseParts | Awaitable[ResponseParts]:
        assert self._stage is not None  # noqa: S101
        answer = self._stage.authenticate(frame)
        if answer is ANSWER_AS_USUAL:
            return self._context.handle_request(frame, peer)
        return answer

    def _handle_in_session(
        self, frame: memoryview, peer: Peer
    ) -> ResponseParts | Awaitable[ResponseParts]:
        """Process a request of a session that expires."""
        assert self._stage is not None  # noqa: S101
        now_s = self._loop.time()
        if self._stage.maybe_begin_again(frame, now_s):
            return self._authenticate(frame, peer)
        if self._stage.is_expired(now_s):
            raise CloseConnection("the session has expired, and the client has not renewed it")
        return self._context.handle_request(frame, peer)

    def on_authenticated(self, session: Session) -> None:
        """See StageOwner."""
        assert self._stage is not None  # noqa: S101
        self.peer = self.peer._replace(principal=session.principal)
        self._state.on(Event.AUTHENTICATED)
        self._frames.max_frame_bytes = self._context.socket_request_max_bytes
        self._handle_request = (
            self._handle_in_session if self._stage.has_expiry else self._context.handle_request
        )

    def on_reauthentication(self) -> None:
        """See StageOwner."""
        self._state.on(Event.REAUTHENTICATE)
        self._expect_authentication()

    def on_authentication_failed(self, reason: str) -> None:
        """See StageOwner."""
        self._log_failure(reason)
        self._loop.call_soon(self.close)

    # --- requests and responses -------------------------------------------------------------------

    def _serve(self) -> None:
        """Process the requests that are here and that arrive meanwhile.

        Small responses are written together at the end: waking the client once for several costs
        both sides a fraction of waking it for each.
        """
        self.last_active_s = self._loop.time()
        state = self._state
        try:
            processed = self._process_frames() if self._frames.has_bytes else 0
            for _ in range(_READS_PER_TURN):
                if (
                    not self._is_readable
                    or not state.may_read
                    or processed >= _REQUESTS_PER_TURN
                    or not self._read()
                ):
                    break
                count = self._process_frames()
                processed += count
                if count > 1:
                    self._pipelines = True
                # Reading again costs less than an event, if there is something; else it is wasted.
                if self._pipelines and count:
                    self._is_readable = True
            if self._small_responses:
                self._write_small_responses()
        except Exception as error:  # noqa: BLE001  # the fence
            self._write_small_responses()
            self._close_because(error)
        if self._is_readable and state.may_read:  # enough for one turn
            self._loop.call_soon(self._maybe_serve)

    def _maybe_serve(self) -> None:
        if self._state.may_read:
            self._serve()

    def _process_frames(self) -> int:
        """Process whole frames while responses come at once and the client reads them.

        Returns how many. Small responses are left in `_small_responses`.
        """
        count = 0
        state, frames = self._state, self._frames
        while state.may_read and (frame := frames.next_frame()) is not None:
            count += 1
            response = self._handle_request(frame, self.peer)
            if response is None:
                continue
            if type(response) is not list:
                if isinstance(response, TrackedResponse):
                    self._write_small_responses()
                    self._write_tracked(response)
                    continue
                state.on(Event.REQUEST_DEFERRED)
                self._await(as_deferred(cast(Awaitable[ResponseParts], response)))
                return count
            head = response[0]
            if isinstance(head, bytearray) and len(response) == 1 and len(head) <= _SMALL_BYTES:
                self._small_responses += head
                if len(self._small_responses) > _SMALL_BYTES:
                    self._write_small_responses()
            else:
                self._write_small_responses()
                self._write(response)
        if frames.is_counted:
            frames.release_processed()
        return count

    def _await(self, deferred: DeferredResponse[ResponseParts]) -> None:
        self._completion = deferred.completion
        deferred.completion.add_done_callback(partial(self._on_completed, deferred))

    def _on_completed(
        self, deferred: DeferredResponse[ResponseParts], completion: Completion
    ) -> None:
        if completion.cancelled() or self._state.current is not State.RESPONDING:
            return  # the connection was closed
        try:
            response = deferred.respond()
            if isinstance(response, DeferredResponse):  # it waits for something else now
                self._await(response)
                return
            self._completion = None
            self._state.on(Event.RESPONSE_READY)
            if isinstance(response, TrackedResponse):
                self._write_tracked(response)
            else:
                self._write(response)
        except Exception as error:  # noqa: BLE001  # the fence
            self._close_because(error)
            return
        if self._frames.is_counted:
            self._frames.release_processed()
        self.last_active_s = self._loop.time()
        if self._state.may_read and (self._is_readable or self._frames.has_bytes):
            # Not now: this may run in the middle of another client's request, which completed it.
            self._loop.call_soon(self._maybe_serve)

    def _write_tracked(self, response: TrackedResponse) -> None:
        """Write a response that is measured, or after which the client is throttled."""
        self._write(response)
        self._on_sent = response.on_sent
        if not self.transport.has_unsent:
            self._report_sent()
        if isinstance(response, ThrottledResponse):
            self._throttle(response.throttle_s)

    def _report_sent(self) -> None:
        on_sent, self._on_sent = self._on_sent, None
        if on_sent is not None:
            on_sent()

    def _write_small_responses(self) -> None:
        if self._small_responses:
            responses, self._small_responses = self._small_responses, bytearray()
            self._write([responses])

    def _write(self, parts: ResponseParts) -> None:
        """Write a response; what the socket does not take blocks the connection.

        Without a response there may still be bytes of earlier ones unsent.
        """
        if self._state.current is State.CLOSED:
            return
        try:
            is_sent = self.transport.write(parts) if parts else not self.transport.has_unsent
        except OSError:  # the client is gone
            self.abort()
            return
        if not is_sent:
            self._state.on(Event.SOCKET_FULL)

    # --- the end ----------------------------------------------------------------------------------

    def _close_because(self, error: Exception) -> None:
        """Close: the client would take the next response for the one that is missing."""
        if isinstance(error, DecodeError | CloseConnection):
            logger.warning("closing connection peer=%s reason=%s", self.peer, error)
        else:  # a bug that the fence of the dispatcher did not catch
            logger.error("closing connection peer=%s", self.peer, exc_info=error)
        self.abort()

    def _abandon_request(self) -> None:
        if self._completion is not None:
            self._completion.cancel()
            self._completion = None

    def _release(self) -> None:
        """Free everything, once, when the state has become CLOSED."""
        self._abandon_request()
        if self._handshake is not None:
            self._handshake.abandon()
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
        self._frames.close()
        self._context.poller.forget(self.transport.fileno())
        self.transport.close()
        self._context.on_closed(self)
