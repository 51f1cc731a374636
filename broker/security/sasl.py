"""What every SASL mechanism has in common."""

from collections.abc import Generator

Conversation = Generator[bytes, bytes, None]
"""The client's side: yields tokens, is sent the broker's, and returns when it is satisfied."""


class SaslError(ValueError):
    """The other side broke the mechanism's rules, or is not who it should be."""
