"""SCRAM credentials of users."""

from dataclasses import dataclass, field

from broker.security.scram import ScramMechanism

MECHANISM_CODES = {ScramMechanism.SHA_256: 1, ScramMechanism.SHA_512: 2}
"""The numbers of the mechanisms in the protocol."""
DEFAULT_ITERATIONS = 4096
MAX_ITERATIONS = 16384


@dataclass(frozen=True)
class Credential:
    """A credential as the brokers show it: without its secrets."""

    user: str
    mechanism: str
    iterations: int


@dataclass(frozen=True)
class NewCredential:
    """A credential to store; the brokers get the salted password only."""

    user: str
    mechanism: ScramMechanism
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)
