"""Who sent a request, as Kafka names it: `User:alice`."""

from typing import Final, NamedTuple


class KafkaPrincipal(NamedTuple):
    """An authenticated identity; ACLs and quotas refer to it."""

    principal_type: str
    name: str
    is_token_authenticated: bool = False
    """Whether it logged in with a delegation token; it may not create further tokens then."""

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS: Final = KafkaPrincipal("User", "ANONYMOUS")
"""Clients of listeners without authentication, as in Kafka."""
