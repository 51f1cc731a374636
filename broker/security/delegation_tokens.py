"""Delegation tokens (KIP-48): their contents, the right to use them, and the login with them.

A token is a random id and the HMAC of that id under `delegation.token.secret.key`, which brokers
share. The HMAC is never stored: it is computed from the secret when needed. A client logs in by
SCRAM with the id as user name and the HMAC in base64 as password.
"""

import hashlib
import hmac as hmac_module
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, replace

from broker.clock import Clock
from broker.security.principal import KafkaPrincipal
from broker.security.scram import (
    ScramCredential,
    ScramLogin,
    ScramMechanism,
    make_credential,
)


@dataclass(frozen=True)
class TokenInformation:
    """A token without its HMAC; times are Unix times in milliseconds."""

    token_id: str
    owner: KafkaPrincipal
    requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiry_timestamp_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Whether the token has expired."""
        return min(self.max_timestamp_ms, self.expiry_timestamp_ms) < now_ms

    def is_owner_or_renewer(self, principal: KafkaPrincipal) -> bool:
        """Whether the principal may renew, expire and see the token."""
        known = (self.owner, self.requester, *self.renewers)
        return any(principal[:2] == other[:2] for other in known)

    def expiring_at(self, expiry_timestamp_ms: int) -> "TokenInformation":
        """The same token with another expiry time, limited by its maximum lifetime."""
        limited = min(self.max_timestamp_ms, expiry_timestamp_ms)
        return replace(self, expiry_timestamp_ms=limited)


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """The HMAC of a token: its secret part."""
    return hmac_module.digest(secret_key.encode(), token_id.encode(), hashlib.sha512)


def parse_principal(text: str) -> KafkaPrincipal:
    """`User:alice`; ValueError if there is no type."""
    principal_type, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return KafkaPrincipal(principal_type, name)


class TokenCache:
    """The tokens that this broker knows.

    Field `_credentials`: SCRAM credentials of tokens that were used to log in; computing one takes
    some milliseconds. Invariant: only of tokens in `_tokens`.
    """

    def __init__(self, secret_key: str, clock: Clock) -> None:
        self._secret_key = secret_key
        self._clock = clock
        self._tokens: dict[str, TokenInformation] = {}
        self._ids: dict[bytes, str] = {}
        """Token ids by HMAC."""
        self._credentials: dict[tuple[ScramMechanism, str], ScramCredential] = {}

    def hmac_of(self, token_id: str) -> bytes:
        """The HMAC of a token."""
        return token_hmac(self._secret_key, token_id)

    def update(self, token: TokenInformation) -> None:
        """Add or replace a token."""
        self._tokens[token.token_id] = token
        self._ids[self.hmac_of(token.token_id)] = token.token_id

    def remove(self, token_id: str) -> None:
        """Remove a token, if it is there."""
        self._tokens.pop(token_id, None)
        self._ids.pop(self.hmac_of(token_id), None)
        for mechanism in ScramMechanism:
            self._credentials.pop((mechanism, token_id), None)

    def by_hmac(self, hmac: bytes) -> TokenInformation | None:
        """The token with this HMAC."""
        token_id = self._ids.get(hmac)
        return None if token_id is None else self._tokens[token_id]

    def all(self) -> Iterable[TokenInformation]:
        """All tokens, expired ones included."""
        return list(self._tokens.values())

    def login(self, mechanism: ScramMechanism, token_id: str) -> ScramLogin | None:
        """The SCRAM login of a token; None if it is unknown or expired."""
        token = self._tokens.get(token_id)
        if token is None or token.is_expired(self._clock.now_ms()):
            return None
        key = (mechanism, token_id)
        if key not in self._credentials:
            password = b64encode(self.hmac_of(token_id)).decode()
            self._credentials[key] = make_credential(mechanism, password)
        return ScramLogin(self._credentials[key], token.owner.name, token.expiry_timestamp_ms)
