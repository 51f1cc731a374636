"""What the four requests about delegation tokens share while no principal is authenticated."""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """The identity of a client."""

    type: str
    name: str


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""The principal of every connection through a PLAINTEXT listener."""

NO_TIMESTAMP: Final = -1
