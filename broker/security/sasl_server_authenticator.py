"""Kafka's SaslServerAuthenticator: the requests of a client up to its authentication.

    FIRST_REQUEST ──ApiVersions──► HANDSHAKE ──SaslHandshake──► AUTHENTICATE ──last token──► OVER
          └──────────SaslHandshake──────────────────────────────────▲  ▲ └─token─┘

Anything else fails the authentication. After SaslHandshake v0 the tokens are bare, each preceded by
its size; after v1 they are in SaslAuthenticate (KIP-152). Re-authentication (KIP-368) begins with
SaslHandshake and must end with the same mechanism and principal.

No I/O: `receive` takes a frame and returns what to send. Messages to clients are Kafka's; they
never say whether a user exists.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from broker.clock import Clock
from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode_from, encode_into
from broker.protocol.errors import DecodeError
from broker.protocol.framing import SIZE, set_size
from broker.protocol.headers import read_request_header, start_response
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from broker.protocol.primitives import Part
from broker.protocol.schema import Response
from broker.security.principal import KafkaPrincipal
from broker.security.sasl import Identity, SaslAuthenticationFailed, SaslError, ServerExchange

_GSSAPI_TOKEN: Final = 0x60
"""First byte of what a client of Kafka 0.9 sends: a Kerberos token instead of a request."""


class Mechanism(NamedTuple):
    """An enabled mechanism."""

    begin: Callable[[], ServerExchange]
    """Starts the broker's side of an exchange."""
    connections_max_reauth_ms: int = 0
    """The longest session without re-authentication; 0: no limit."""


@dataclass(frozen=True)
class SaslServerSettings:
    """The SASL settings of one listener."""

    mechanisms: Mapping[str, Mechanism]
    clock: Clock
    max_receive_bytes: int = 524288
    """`sasl.server.max.receive.size`: the largest request before authentication."""
    principal_type: str = field(default="User")


class Session(NamedTuple):
    """The identity of an authenticated connection."""

    principal: KafkaPrincipal
    mechanism: str
    lifetime_ms: int | None = None
    """The client must re-authenticate within this time; None: never."""


class Step(NamedTuple):
    """What to do after a frame of the client."""

    response: list[Part] | None = None
    session: Session | None = None
    """Set when the authentication is complete."""
    failure: str | None = None
    """Why it failed: the connection is closed after the response. For the log."""
    is_api_versions: bool = False
    """The frame is an ApiVersions request, to be answered as on any other connection."""


class _State(Enum):
    FIRST_REQUEST = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    OVER = auto()


class _Failed(Exception):
    """The authentication has failed; with the response, if the client gets one."""

    def __init__(self, reason: str, response: list[Part] | None = None) -> None:
        super().__init__(reason)
        self.response = response


class SaslServerAuthenticator:
    """The authentication of one connection; `previous` if it authenticates again."""

    def __init__(self, settings: SaslServerSettings, previous: Session | None = None) -> None:
        self._settings = settings
        self._previous = previous
        self._state = _State.FIRST_REQUEST if previous is None else _State.HANDSHAKE
        self._mechanism = ""
        self._exchange: ServerExchange
        self._has_headers = False
        """Whether tokens come in SaslAuthenticate."""

    @property
    def settings(self) -> SaslServerSettings:
        """The settings of the listener."""
        return self._settings

    def receive(self, frame: memoryview) -> Step:
        """Process a frame; DecodeError if it is not a request at all."""
        try:
            if self._state is _State.AUTHENTICATE:
                return self._on_token(frame)
            if self._state is _State.OVER:
                raise _Failed("a request after failed authentication")
            return self._on_request(frame)
        except _Failed as failed:
            self._state = _State.OVER
            return Step(failed.response, failure=str(failed))

    # --- before the first token -------------------------------------------------------------------

    def _on_request(self, frame: memoryview) -> Step:
        if self._state is _State.FIRST_REQUEST and frame[:1] == bytes([_GSSAPI_TOKEN]):
            raise _Failed("the client sent a GSSAPI token, and GSSAPI is not enabled")
        api_key, version, correlation_id, _, body = read_request_header(frame)
        if api_key == ApiKey.API_VERSIONS:
            return self._on_api_versions(version)
        if api_key != ApiKey.SASL_HANDSHAKE:
            name = ApiKey(api_key).name
            raise _Failed(f"Unexpected Kafka request of type {name} during SASL handshake.")
        request = _decode(SaslHandshakeRequest, frame, body, version)
        self._has_headers = version >= 1
        return self._on_handshake(request.mechanism, version, correlation_id)

    def _on_api_versions(self, version: int) -> Step:
        if self._state is not _State.FIRST_REQUEST:
            raise _Failed("Unexpected ApiVersions request received during SASL authentication")
        lowest, highest = ApiVersionsRequest.versions
        if lowest <= version <= highest:  # else the client may send another one
            self._state = _State.HANDSHAKE
        return Step(is_api_versions=True)

    def _on_handshake(self, mechanism: str, version: int, correlation_id: int) -> Step:
        enabled = self._settings.mechanisms

        def response(code: ErrorCode) -> list[Part]:
            answer = SaslHandshakeResponse(error_code=code, mechanisms=list(enabled))
            return _encode(ApiKey.SASL_HANDSHAKE, answer, version, correlation_id)

        if mechanism not in enabled:
            problem = f"Unsupported SASL mechanism {mechanism}"
            raise _Failed(problem, response(ErrorCode.UNSUPPORTED_SASL_MECHANISM))
        self._mechanism = mechanism
        self._exchange = enabled[mechanism].begin()
        next(self._exchange)
        self._state = _State.AUTHENTICATE
        return Step(response(ErrorCode.NONE))

    # --- tokens -----------------------------------------------------------------------------------

    def _on_token(self, frame: memoryview) -> Step:
        if not self._has_headers:
            return self._on_bare_token(bytes(frame))
        api_key, version, correlation_id, _, body = read_request_header(frame)
        if api_key != ApiKey.SASL_AUTHENTICATE:
            name = ApiKey(api_key).name
            raise _Failed(f"Unexpected Kafka request of type {name} during SASL authentication.")
        request = _decode(SaslAuthenticateRequest, frame, body, version)

        def response(**fields: Any) -> list[Part]:
            answer = SaslAuthenticateResponse(**({"error_message": None} | fields))
            return _encode(ApiKey.SASL_AUTHENTICATE, answer, version, correlation_id)

        try:
            identity = self._advance(request.auth_bytes)
            if isinstance(identity, bytes):
                return Step(response(auth_bytes=identity))
            session = self._session(identity)
        except SaslError as error:
            message = self._client_message(error)
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            raise _Failed(str(error), response(error_code=code, error_message=message)) from error
        self._state = _State.OVER
        lifetime_ms = session.lifetime_ms or 0
        last = response(auth_bytes=identity.last_token, session_lifetime_ms=lifetime_ms)
        return Step(last, session)

    def _on_bare_token(self, token: bytes) -> Step:
        try:
            identity = self._advance(token)
            if isinstance(identity, bytes):
                return Step(_sized(identity))
            session = self._session(identity)
        except SaslError as error:  # this protocol has no error response
            raise _Failed(str(error)) from error
        self._state = _State.OVER
        return Step(_sized(identity.last_token), session)

    def _advance(self, token: bytes) -> bytes | Identity:
        """The broker's next token, or the client's identity after its last one."""
        if self._previous and self._previous.mechanism != self._mechanism:
            raise SaslAuthenticationFailed(
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._previous.mechanism}'"
            )
        try:
            return self._exchange.send(token)
        except StopIteration as stopped:
            identity: Identity = stopped.value
            return identity

    def _session(self, identity: Identity) -> Session:
        principal = KafkaPrincipal(
            self._settings.principal_type, identity.name, identity.is_token_authenticated
        )
        if self._previous and self._previous.principal[:2] != principal[:2]:
            before = ".".join(self._previous.principal[:2])
            raise SaslAuthenticationFailed(
                f"Cannot change principals during re-authentication from {before}: "
                f"{'.'.join(principal[:2])}"
            )
        return Session(principal, self._mechanism, self._lifetime_ms(identity))

    def _lifetime_ms(self, identity: Identity) -> int | None:
        limits = []
        if limit_ms := self._settings.mechanisms[self._mechanism].connections_max_reauth_ms:
            limits.append(limit_ms)
        if identity.expires_at_ms is not None:
            limits.append(identity.expires_at_ms - self._settings.clock.now_ms())
        return max(0, min(limits)) if limits else None

    def _client_message(self, error: SaslError) -> str:
        if isinstance(error, SaslAuthenticationFailed):
            return str(error)
        what = "authentication" if self._previous is None else "re-authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )


def _decode(request: type[Any], frame: memoryview, body: int, version: int) -> Any:
    lowest, highest = request.versions
    if not lowest <= version <= highest:
        raise _Failed(f"Version {version} is not supported for apiKey {request.__name__}")
    try:
        return decode_from(request, frame, body, version)[0]
    except struct.error as error:
        raise DecodeError(str(error)) from error


def _encode(api_key: int, response: Response, version: int, correlation_id: int) -> list[Part]:
    return set_size(
        encode_into(response, version, start_response(api_key, version, correlation_id))
    )


def _sized(token: bytes) -> list[Part]:
    return [bytearray(SIZE.pack(len(token)) + token)]
