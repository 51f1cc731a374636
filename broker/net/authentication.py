"""How outbound connections are made safe: TLS around them, SASL at their beginning.

SASL goes `SaslHandshake v1` to agree on the mechanism, then `SaslAuthenticate` once per token
(KIP-152). What tokens contain is the mechanism's business: a generator that yields ours and is sent
the broker's, and raises ValueError when the broker is not who it should be.
"""

from collections.abc import Callable, Generator
from ssl import SSLContext
from typing import NamedTuple, Protocol

from broker.errors import ApiError, ErrorCode
from broker.net.failures import SecurityFailed, SecurityProblem
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from broker.protocol.schema import Request, ResponseT


class Sasl(NamedTuple):
    """A mechanism, and how to begin its conversation: anew for every connection."""

    mechanism: str
    begin: Callable[[], Generator[bytes, bytes, None]]


class Security(NamedTuple):
    """What outbound connections do before the first request; nothing, unless said."""

    tls: SSLContext | None = None
    sasl: Sasl | None = None


PLAINTEXT = Security()


class Sender(Protocol):
    """The part of a connection that is needed here."""

    @property
    def node(self) -> object:
        """The broker's address."""
        ...

    async def send(self, request: Request[ResponseT], version: int | None = None) -> ResponseT:
        """Send a request and give its answer."""
        ...


async def authenticate(connection: Sender, sasl: Sasl) -> None:
    """Tell the broker who we are; SecurityFailed if it does not let us in."""
    await _agree_on(connection, sasl.mechanism)
    conversation = sasl.begin()
    token = next(conversation)
    while True:
        answer = await connection.send(SaslAuthenticateRequest(auth_bytes=token))
        if answer.error_code:
            reason = answer.error_message or ErrorCode.name_of(answer.error_code)
            raise SecurityFailed(
                f"{connection.node} refused the login: {reason}", SecurityProblem.BAD_CREDENTIALS
            )
        try:
            token = conversation.send(answer.auth_bytes)
        except StopIteration:
            return
        except ValueError as error:
            raise SecurityFailed(
                f"{connection.node}: {error}", SecurityProblem.BAD_CREDENTIALS
            ) from error


async def _agree_on(connection: Sender, mechanism: str) -> None:
    try:
        answer = await connection.send(SaslHandshakeRequest(mechanism=mechanism), version=1)
    except ApiError as error:  # it does not serve the request at all
        raise _no_sasl(connection.node) from error
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise _no_sasl(connection.node)
    if answer.error_code:
        offer = ", ".join(sorted(answer.mechanisms)) or "none"
        raise SecurityFailed(
            f"{connection.node} has {mechanism} not enabled; it offers {offer}",
            SecurityProblem.MECHANISM_NOT_ENABLED,
        )


def _no_sasl(node: object) -> SecurityFailed:
    return SecurityFailed(f"{node} has no SASL on this listener", SecurityProblem.NO_SASL)
