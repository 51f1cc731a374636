"""PLAIN (RFC 4616): user name and password unencrypted; only safe inside of TLS."""

import hmac
from collections.abc import Mapping
from typing import Final

from broker.security.sasl import (
    Exchange,
    Identity,
    SaslAuthenticationFailed,
    SaslError,
    ServerExchange,
)

MECHANISM = "PLAIN"
_NUM_PARTS: Final = 3
"""Authorization id, user name, password."""


def plain_client(username: str, password: str) -> Exchange:
    """The client's side: one token; any successful response completes it."""
    yield plain_token(username, password)


def plain_token(username: str, password: str, authorization_id: str = "") -> bytes:
    """Authorization id, user name and password, separated by NUL."""
    return "\0".join((authorization_id, username, password)).encode()


def plain_server(users: Mapping[str, str]) -> ServerExchange:
    """The broker's side; `users` are passwords by name."""
    token = yield b""
    parts = token.decode("utf-8", "replace").split("\0")
    if len(parts) != _NUM_PARTS:
        raise SaslError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
    authorization_id, username, password = parts
    if not username:
        raise SaslError("Authentication failed: username not specified")
    if not password:
        raise SaslError("Authentication failed: password not specified")
    expected = users.get(username)
    # Compared also for an unknown user, so that the time does not reveal which users exist.
    is_right = hmac.compare_digest((expected or "").encode(), password.encode())
    if expected is None or not is_right:
        raise SaslAuthenticationFailed("Authentication failed: Invalid username or password")
    if authorization_id not in ("", username):
        raise SaslAuthenticationFailed(
            "Authentication failed: Client requested an authorization id that is different from "
            "username"
        )
    return Identity(username)
