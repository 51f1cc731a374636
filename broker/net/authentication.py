"""Security of outbound connections: TLS around them, SASL at their beginning.

SASL begins with `SaslHandshake v1`, which selects the mechanism, followed by one `SaslAuthenticate`
per token (KIP-152). The tokens are made and checked by the mechanism, a generator: it yields the
client's tokens, receives the broker's, and raises ValueError if the broker fails to prove its
identity.
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
    """A mechanism, and the function that starts its exchange, once per connection."""

    mechanism: str
    begin: Callable[[], Generator[bytes, bytes, None]]


class Security(NamedTuple):
    """The steps of an outbound connection before its first request; none by default."""

    tls: SSLContext | None = None
    sasl: Sasl | None = None


PLAINTEXT = Security()


class Sender(Protocol):
    """What authentication needs of a connection."""

    @property
    def node(self) -> object:
        """The broker's address."""
        ...

    async def send(self, request: Request[ResponseT], version: int | None = None) -> ResponseT:
        """Send a request and return its response."""
        ...


async def authenticate(connection: Sender, sasl: Sasl) -> None:
    """Authenticate to the broker; SecurityFailed if it refuses."""
    await _select_mechanism(connection, sasl.mechanism)
    conversation = sasl.begin()
    token = next(conversation)
    while True:
        response = await connection.send(SaslAuthenticateRequest(auth_bytes=token))
        if response.error_code:
            reason = response.error_message or ErrorCode.name_of(response.error_code)
            raise SecurityFailed(
                f"{connection.node} refused the login: {reason}", SecurityProblem.BAD_CREDENTIALS
            )
        try:
            token = conversation.send(response.auth_bytes)
        except StopIteration:
            return
        except ValueError as error:
            raise SecurityFailed(
                f"{connection.node}: {error}", SecurityProblem.BAD_CREDENTIALS
            ) from error


async def _select_mechanism(connection: Sender, mechanism: str) -> None:
    try:
        response = await connection.send(SaslHandshakeRequest(mechanism=mechanism), version=1)
    except ApiError as error:  # the broker does not serve SaslHandshake at all
        raise _no_sasl(connection.node) from error
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise _no_sasl(connection.node)
    if response.error_code:
        offer = ", ".join(sorted(response.mechanisms)) or "none"
        raise SecurityFailed(
            f"{connection.node} has not enabled {mechanism}; it offers {offer}",
            SecurityProblem.MECHANISM_NOT_ENABLED,
        )


def _no_sasl(node: object) -> SecurityFailed:
    return SecurityFailed(f"{node} has no SASL on this listener", SecurityProblem.NO_SASL)
