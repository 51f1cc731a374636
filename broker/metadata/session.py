"""The session of a store: ephemeral nodes exist as long as it does."""

from collections.abc import Callable
from enum import StrEnum

from broker.metrics.histogram import Histogram


class SessionState(StrEnum):
    """The state of a session.

    A DISCONNECTED session may reconnect as it was; an EXPIRED one is followed by a new session.
    """

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    EXPIRED = "expired"
    AUTH_FAILED = "auth failed"
    CLOSED = "closed"


class Session:
    """The session as the store's users see it. All callbacks run on the event loop, in order.

    Field `id`: of the current session, the owner of ephemeral nodes that are created now; 0 before
    the first connection. Invariant: changes only after an expiry.
    Field `state`: see SessionState.
    Field `num_expired`, `num_disconnected`, …: how often the session entered that state.
    Field `request_times`: durations of requests to ZooKeeper; empty for the embedded store.
    """

    def __init__(self) -> None:
        self.id = 0
        self.state = SessionState.DISCONNECTED
        self.num_expired = 0
        self.num_disconnected = 0
        self.num_connected = 0
        self.num_auth_failed = 0
        self.request_times = Histogram()
        self._expired: list[Callable[[], None]] = []
        self._moved: list[Callable[[SessionState], None]] = []

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Call back each time the session expires, before any watch is notified."""
        self._expired.append(callback)

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Call back at every change of state; a new session has its `id` by then."""
        self._moved.append(callback)

    def move_to(self, state: SessionState, session_id: int | None = None) -> None:
        """Change to `state` and run the callbacks; for the stores."""
        if session_id is not None:
            self.id = session_id
        self.state = state
        if state is SessionState.EXPIRED:
            self.num_expired += 1
        elif state is SessionState.DISCONNECTED:
            self.num_disconnected += 1
        elif state is SessionState.CONNECTED:
            self.num_connected += 1
        elif state is SessionState.AUTH_FAILED:
            self.num_auth_failed += 1
        for moved in list(self._moved):
            moved(state)
        if state is SessionState.EXPIRED:
            for expired in list(self._expired):
                expired()
