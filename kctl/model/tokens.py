"""Delegation tokens."""

from base64 import b64encode
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DelegationToken:
    """A token; a client that has its HMAC can log in as its owner."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int

    @property
    def hmac_text(self) -> str:
        """The HMAC as clients use it: the password of SCRAM, with the token id as user name."""
        return b64encode(self.hmac).decode()
