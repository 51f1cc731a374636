"""What the three ACL requests share while there is no authorizer."""

from typing import Final

from broker.net.connection import CloseConnection

NO_AUTHORIZER: Final = "No Authorizer is configured."

_UNKNOWN: Final = 0
"""The number of the UNKNOWN element of every enumeration of ACLs."""


def check_known(*elements: int) -> None:
    """CloseConnection if an element is UNKNOWN: Kafka takes such a request for a malformed one."""
    if _UNKNOWN in elements:
        raise CloseConnection("ACL request contains UNKNOWN elements")
