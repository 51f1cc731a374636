"""/delegation_token: delegation tokens (KIP-48), and the notifications of their changes."""

from dataclasses import dataclass
from typing import ClassVar

from broker.metadata.znodes.configs import desanitize, sanitize
from broker.metadata.znodes.json_text import decode_json, encode_json, reading

TOKENS_PATH = "/delegation_token/tokens"


@dataclass(frozen=True, slots=True)
class DelegationTokenZnode:
    """/delegation_token/tokens/ID. Principals are written as `User:alice`.

    Version 3 distinguishes the requester from the owner of the token (KIP-373).
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int

    @staticmethod
    def path(token_id: str) -> str:
        """The path of a token."""
        return f"{TOKENS_PATH}/{token_id}"

    def encode(self) -> bytes:
        """As Kafka writes it."""
        return encode_json(
            {
                "issueTimestamp": self.issue_timestamp,
                "renewers": list(map(sanitize, self.renewers)),
                "tokenRequester": sanitize(self.requester),
                "tokenId": self.token_id,
                "owner": sanitize(self.owner),
                "expiryTimestamp": self.expiry_timestamp,
                "maxTimestamp": self.max_timestamp,
                "version": 3,
            }
        )

    @classmethod
    def decode(cls, token_id: str, data: bytes | None) -> "DelegationTokenZnode":
        """The token."""
        path = cls.path(token_id)
        fields = decode_json(path, data)
        with reading(path, data):
            if not 1 <= fields["version"] <= 3:
                raise ValueError("unsupported version")
            return cls(
                fields["tokenId"],
                desanitize(fields["owner"]),
                desanitize(fields.get("tokenRequester", fields["owner"])),
                tuple(map(desanitize, fields["renewers"])),
                int(fields["issueTimestamp"]),
                int(fields["maxTimestamp"]),
                int(fields["expiryTimestamp"]),
            )


class TokenChangeZnode:
    """/delegation_token/token_changes/token_change_N: the id of a token that has changed."""

    PARENT: ClassVar[str] = "/delegation_token/token_changes"
    PREFIX: ClassVar[str] = "/delegation_token/token_changes/token_change_"

    @staticmethod
    def encode(token_id: str) -> bytes:
        """As Kafka writes it."""
        return token_id.encode()

    @classmethod
    def decode(cls, data: bytes | None) -> str:
        """The token's id."""
        with reading(cls.PARENT, data):
            return (data or b"").decode()
