"""The authentication stage of a connection with SASL: what happens to frames before requests.

Decides when a session begins, when it has expired and when the client authenticates again; the
exchange itself is `security.sasl_server_authenticator`. A failure is answered, and the connection
closed, after `connection.failed.authentication.delay.ms`.
"""

import asyncio
import struct
from collections.abc import Callable
from enum import Enum
from typing import Final, Literal, Protocol

from broker.net.deferred import DeferredResponse
from broker.protocol.api_keys import ApiKey
from broker.protocol.primitives import Part
from broker.security.sasl_server_authenticator import SaslServerAuthenticator, Session


class AnswerAsUsual(Enum):
    """The frame is to be answered like any other request: ApiVersions."""

    YES = 0


ANSWER_AS_USUAL: Final = AnswerAsUsual.YES
Answer = list[Part] | None | DeferredResponse[list[Part] | None] | Literal[AnswerAsUsual.YES]

_API_KEY: Final = struct.Struct(">h")
_MIN_REAUTHENTICATION_INTERVAL_S: Final = 1.0


class StageOwner(Protocol):
    """What the stage needs of its connection."""

    def on_authenticated(self, session: Session) -> None:
        """The client is known from now on."""

    def on_reauthentication(self) -> None:
        """The client begins to authenticate again."""

    def on_authentication_failed(self, reason: str) -> None:
        """It failed: close after the response."""


class SaslStage:
    """The stage of one connection."""

    def __init__(
        self,
        new_authenticator: Callable[[Session | None], SaslServerAuthenticator],
        owner: StageOwner,
        delay_s: float,
    ) -> None:
        self._new_authenticator = new_authenticator
        self._authenticator = new_authenticator(None)
        self._owner = owner
        self._delay_s = delay_s
        self._session: Session | None = None
        self._expires_at_s: float | None = None
        """In the loop's time; None: the session does not expire."""
        self._began_again_at_s = float("-inf")

    @property
    def has_expiry(self) -> bool:
        """Whether requests must be checked against the end of the session."""
        return self._expires_at_s is not None

    @property
    def max_receive_bytes(self) -> int:
        """The largest frame before authentication."""
        return self._authenticator.settings.max_receive_bytes

    def authenticate(self, frame: memoryview) -> Answer:
        """Process a frame of the exchange."""
        step = self._authenticator.receive(frame)
        if step.is_api_versions:
            return ANSWER_AS_USUAL
        if step.failure is not None:
            return self._fail(step.response, step.failure)
        if step.session is not None:
            self._begin(step.session)
        return step.response

    def is_expired(self, now_s: float) -> bool:
        """Whether the client should have authenticated again by now."""
        return self._expires_at_s is not None and now_s > self._expires_at_s

    def maybe_begin_again(self, frame: memoryview, now_s: float) -> bool:
        """Whether the frame is a SaslHandshake with which the client authenticates again.

        Not more than once per second: then it is a request like any other, which is refused.
        """
        if len(frame) < _API_KEY.size or _API_KEY.unpack_from(frame)[0] != ApiKey.SASL_HANDSHAKE:
            return False
        if now_s - self._began_again_at_s < _MIN_REAUTHENTICATION_INTERVAL_S:
            return False
        self._began_again_at_s = now_s
        self._authenticator = self._new_authenticator(self._session)
        self._owner.on_reauthentication()
        return True

    def _begin(self, session: Session) -> None:
        self._session = session
        lifetime_ms = session.lifetime_ms
        now_s = asyncio.get_running_loop().time()
        self._expires_at_s = None if lifetime_ms is None else now_s + lifetime_ms / 1000
        self._owner.on_authenticated(session)

    def _fail(
        self, response: list[Part] | None, reason: str
    ) -> "DeferredResponse[list[Part] | None]":
        """The response, later: so guessing takes time, and the client does not try at once."""
        loop = asyncio.get_running_loop()
        delay: asyncio.Future[None] = loop.create_future()
        loop.call_later(self._delay_s, _complete, delay)

        def respond() -> list[Part] | None:
            self._owner.on_authentication_failed(reason)
            return response

        return DeferredResponse(delay, respond)


def _complete(delay: "asyncio.Future[None]") -> None:
    if not delay.done():
        delay.set_result(None)
