"""What all SASL mechanisms have in common."""

from collections.abc import Generator

Exchange = Generator[bytes, bytes, None]
"""The client's side: yields its tokens, receives the broker's, and returns on success."""


class SaslError(ValueError):
    """The other side violated the protocol of the mechanism, or failed to authenticate itself."""
