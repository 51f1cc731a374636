"""The session of a store: what ephemeral nodes live by, and who is told when it ends."""

from collections.abc import Callable
from enum import StrEnum


class SessionState(StrEnum):
    """Where a session stands.

    DISCONNECTED sessions may come back as they were, EXPIRED ones are followed by a new session.
    """

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    EXPIRED = "expired"
    AUTH_FAILED = "auth failed"
    CLOSED = "closed"


class Session:
    """What a store's user knows of its session. All callbacks run on the event loop, in order.

    Field `id`: of the current session, the owner of the ephemeral nodes made now; another one
    after each expiry. 0 before the first connection.
    """

    def __init__(self) -> None:
        self.id = 0
        self.state = SessionState.DISCONNECTED
        self._expired: list[Callable[[], None]] = []
        self._moved: list[Callable[[SessionState], None]] = []

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Call back each time the session is lost for good, before any watch is told."""
        self._expired.append(callback)

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Call back at every change of state; a new session has its `id` by then."""
        self._moved.append(callback)

    def move_to(self, state: SessionState, session_id: int | None = None) -> None:
        """Take on `state` and tell everyone; for the stores."""
        if session_id is not None:
            self.id = session_id
        self.state = state
        for moved in list(self._moved):
            moved(state)
        if state is SessionState.EXPIRED:
            for expired in list(self._expired):
                expired()
