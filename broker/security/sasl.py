"""What all SASL mechanisms have in common."""

from collections.abc import Generator
from typing import NamedTuple

Exchange = Generator[bytes, bytes, None]
"""The client's side: yields its tokens, receives the broker's, and returns on success."""


class SaslError(ValueError):
    """The other side violated the protocol of the mechanism, or failed to authenticate itself."""


class SaslAuthenticationFailed(SaslError):
    """The client failed to authenticate; the text may be sent to it."""


class Identity(NamedTuple):
    """The identity that a client has proved."""

    name: str
    """The user name of its principal."""
    last_token: bytes = b""
    """The mechanism's last message to the client."""
    expires_at_ms: int | None = None
    """When the credentials expire, in Unix time; None: never."""
    is_token_authenticated: bool = False
    """Whether it used a delegation token."""


ServerExchange = Generator[bytes, bytes, Identity]
"""The broker's side. Receives the client's tokens and yields the broker's; the first yield has no
meaning, as the client begins. Returns the client's identity, or raises SaslError."""
