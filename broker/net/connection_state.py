"""The states of a client's connection, and every transition between them.

    HANDSHAKING ──► AUTHENTICATING ──► READING ◄──► RESPONDING
                                         ▲ ▲
                                         │ └──────► MUTED
                                         └────────► BLOCKED
    any ──► CLOSING ──► CLOSED

This module has no I/O: `connection` raises the events and acts on the state. A connection
is open for requests in two phases: AUTHENTICATING, where frames go to the authenticator, and
READING, where they go to the dispatcher. RESPONDING, BLOCKED and MUTED interrupt a phase and go
back to it (`RESUME`).

Rules that the table expresses:

- Requests are processed one at a time: nothing is read while a deferred response is awaited, while
  the client does not read what was sent to it, or while the connection is muted. What the client
  goes on sending stays in the kernel, and then in the client (back-pressure).
- The transport keeps the bytes that the socket did not take, in any state. They change the state
  only if it is a phase: then the connection becomes BLOCKED. RESPONDING and MUTED do not read
  anyway; a connection that leaves them with bytes unsent raises SOCKET_FULL next.
- To throttle a client (quotas), send the response, then raise MUTE, and UNMUTE after the delay. The
  delay of a failed authentication is a deferred response, followed by CLOSE.
- A transition that is not in the table is a bug and raises `InvalidTransition`.

A connection without TLS and SASL begins in READING.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class State(Enum):
    """What a connection does at the moment."""

    HANDSHAKING = auto()
    """The transport is not usable yet: TLS handshake."""
    AUTHENTICATING = auto()
    """Frames are read and go to the authenticator."""
    READING = auto()
    """Frames are read and go to the dispatcher."""
    RESPONDING = auto()
    """A deferred response is awaited."""
    BLOCKED = auto()
    """The client does not read: the socket is full and bytes are unsent."""
    MUTED = auto()
    """Reading is suspended: the client is throttled, or memory for large requests is exhausted."""
    CLOSING = auto()
    """Nothing is read any more; the connection is closed as soon as the unsent bytes are sent."""
    CLOSED = auto()
    """The socket is closed."""


class Event(Enum):
    """What changes the state."""

    TRANSPORT_READY = auto()
    """The TLS handshake is complete."""
    AUTHENTICATED = auto()
    """The authenticator knows the principal."""
    REAUTHENTICATE = auto()
    """The client begins to authenticate again (KIP-368)."""
    REQUEST_DEFERRED = auto()
    """A handler returned a deferred response."""
    RESPONSE_READY = auto()
    """The deferred response is there; it is sent next."""
    SOCKET_FULL = auto()
    """Bytes are unsent."""
    SOCKET_DRAINED = auto()
    """All bytes are sent."""
    MUTE = auto()
    UNMUTE = auto()
    CLOSE = auto()
    """Close after what was written is sent: the client has sent its last byte, or we stop."""
    LOST = auto()
    """Close now: the client is gone or sent invalid bytes, or the wait for it is over."""


class InvalidTransition(Exception):
    """An event that the table does not have for a state."""


_S, _E = State, Event

RESUME: Final = None
"""Back to the phase that was interrupted."""

TRANSITIONS: Final[Mapping[State, Mapping[Event, State | None]]] = {
    _S.HANDSHAKING: {
        _E.TRANSPORT_READY: RESUME,
        _E.SOCKET_FULL: _S.HANDSHAKING,
        _E.SOCKET_DRAINED: _S.HANDSHAKING,
        _E.CLOSE: _S.CLOSING,
        _E.LOST: _S.CLOSED,
    },
    _S.AUTHENTICATING: {
        _E.AUTHENTICATED: _S.READING,
        _E.REQUEST_DEFERRED: _S.RESPONDING,
        _E.SOCKET_FULL: _S.BLOCKED,
        _E.MUTE: _S.MUTED,
        _E.CLOSE: _S.CLOSING,
        _E.LOST: _S.CLOSED,
    },
    _S.READING: {
        _E.REAUTHENTICATE: _S.AUTHENTICATING,
        _E.REQUEST_DEFERRED: _S.RESPONDING,
        _E.SOCKET_FULL: _S.BLOCKED,
        _E.MUTE: _S.MUTED,
        _E.CLOSE: _S.CLOSING,
        _E.LOST: _S.CLOSED,
    },
    _S.RESPONDING: {
        _E.AUTHENTICATED: _S.RESPONDING,
        _E.RESPONSE_READY: RESUME,
        _E.SOCKET_FULL: _S.RESPONDING,
        _E.SOCKET_DRAINED: _S.RESPONDING,
        _E.CLOSE: _S.CLOSING,
        _E.LOST: _S.CLOSED,
    },
    _S.BLOCKED: {
        _E.SOCKET_FULL: _S.BLOCKED,
        _E.SOCKET_DRAINED: RESUME,
        _E.MUTE: _S.MUTED,
        _E.CLOSE: _S.CLOSING,
        _E.LOST: _S.CLOSED,
    },
    _S.MUTED: {
        _E.SOCKET_FULL: _S.MUTED,
        _E.SOCKET_DRAINED: _S.MUTED,
        _E.UNMUTE: RESUME,
        _E.CLOSE: _S.CLOSING,
        _E.LOST: _S.CLOSED,
    },
    _S.CLOSING: {
        _E.SOCKET_FULL: _S.CLOSING,
        _E.SOCKET_DRAINED: _S.CLOSED,
        _E.CLOSE: _S.CLOSING,
        _E.LOST: _S.CLOSED,
    },
    _S.CLOSED: {
        _E.CLOSE: _S.CLOSED,
        _E.LOST: _S.CLOSED,
    },
}

_PHASE_AFTER: Final = {
    Event.AUTHENTICATED: State.READING,
    Event.REAUTHENTICATE: State.AUTHENTICATING,
}


class ConnectionState:
    """The state of one connection. Changed by `on` only.

    Field `current`: the state.
    Field `may_read`: whether frames may be read and processed. Invariant: `current` is a phase. A
    plain attribute, because it is read several times per request.
    Field `_phase`: the state that RESUME stands for. Invariant: AUTHENTICATING or READING.
    """

    __slots__ = ("_phase", "current", "may_read")

    def __init__(
        self, *, needs_handshake: bool = False, needs_authentication: bool = False
    ) -> None:
        self._phase = State.AUTHENTICATING if needs_authentication else State.READING
        self.current = State.HANDSHAKING if needs_handshake else self._phase
        self.may_read = not needs_handshake

    def on(self, event: Event) -> State:
        """Change to the next state and return it; InvalidTransition if the table has none."""
        try:
            following = TRANSITIONS[self.current][event]
        except KeyError:
            raise InvalidTransition(f"{event.name} while {self.current.name}") from None
        self._phase = _PHASE_AFTER.get(event, self._phase)
        self.current = self._phase if following is RESUME else following
        self.may_read = self.current is self._phase
        return self.current
