"""OAUTHBEARER (RFC 7628) on the broker's side: a JSON web token instead of a password.

    client-first   n,[a=AUTHZID],^A auth=Bearer TOKEN ^A [name=value ^A …] ^A     (^A is 0x01)
    failure        {"status":"invalid_token"}; the client answers ^A, and the login fails

Tokens are checked by a `TokenValidator`: `UnsecuredValidator` accepts tokens without signature,
for development; `SecuredValidator` verifies signatures with the keys of the provider (JWKS).
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from broker.clock import Clock
from broker.security.sasl import (
    Exchange,
    Identity,
    SaslAuthenticationFailed,
    SaslError,
    ServerExchange,
)

MECHANISM: Final = "OAUTHBEARER"

_CLIENT_FIRST: Final = re.compile(
    r"n,(?:a=(?P<authzid>(?:[^=,\x00\x80-\U0010ffff]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)")
_ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Signature algorithms by type of key; no HMAC, because a provider publishes its keys."""


class InvalidToken(ValueError):
    """The token is not accepted; the text is for the log and does not contain the token."""

    def __init__(self, reason: str, status: str = "invalid_token", scope: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


class ValidToken(NamedTuple):
    """The parts of a token that the broker uses."""

    principal_name: str
    expires_at_ms: int


class TokenValidator(Protocol):
    """Checks tokens."""

    def __call__(self, token: str) -> ValidToken:
        """The token's content; InvalidToken if it is not accepted."""
        ...


def oauthbearer_server(validate: TokenValidator) -> ServerExchange:
    """The broker's side."""
    first = _CLIENT_FIRST.fullmatch((yield b"").decode("utf-8", "replace"))
    if not first:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in first["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", "").strip())
    if not auth or auth["scheme"].lower() != "bearer":
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    try:
        token = validate(auth["token"])
    except InvalidToken as error:
        told = f'{{"status":"{error.status}"'
        told += f', "scope":"{error.scope}"}}' if error.scope else "}"
        yield told.encode()
        raise SaslAuthenticationFailed(told) from error
    authorization_id = (first["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    if authorization_id not in ("", token.principal_name):
        raise SaslAuthenticationFailed(
            f"Authentication failed: Client requested an authorization id ({authorization_id}) "
            f"that is different from the token's principal name ({token.principal_name})"
        )
    return Identity(token.principal_name, b"", token.expires_at_ms)


def oauthbearer_client(token: str) -> Exchange:
    """The client's side; a broker that refuses the token answers with the reason."""
    refusal = yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    if refusal:
        yield b"\x01"
        raise SaslError("the broker refused the token")


def unsecured_token(claims: Mapping[str, Any]) -> str:
    """A token without signature."""
    parts = (json.dumps(part, separators=(",", ":")) for part in ({"alg": "none"}, claims))
    encoded = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return ".".join([*encoded, ""])


@dataclass(frozen=True)
class UnsecuredValidator:
    """Kafka's OAuthBearerUnsecuredValidatorCallbackHandler."""

    clock: Clock
    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: str = ""
    allowed_skew_ms: int = 0

    def __call__(self, token: str) -> ValidToken:
        """See TokenValidator."""
        parts = token.split(".")
        if len(parts) != 3 or parts[2] or _json_part(parts[0]).get("alg") != "none":
            raise InvalidToken("not an unsecured JWS: alg must be none, without signature")
        claims = _json_part(parts[1])
        name, expires_s = claims.get(self.principal_claim), claims.get("exp")
        if not isinstance(name, str) or not name:
            raise InvalidToken(f"no claim {self.principal_claim}")
        if not isinstance(expires_s, int | float):
            raise InvalidToken("no expiration time")
        now_ms, issued_s = self.clock.now_ms(), claims.get("iat")
        if now_ms - self.allowed_skew_ms >= expires_s * 1000:
            raise InvalidToken("expired")
        if isinstance(issued_s, int | float) and issued_s * 1000 > now_ms + self.allowed_skew_ms:
            raise InvalidToken("not issued yet")
        missing = set(self.required_scope.split()) - _scopes(claims.get(self.scope_claim))
        if missing:
            reason = f"without scope {' '.join(sorted(missing))}"
            raise InvalidToken(reason, "insufficient_scope", self.required_scope)
        return ValidToken(name, int(expires_s * 1000))


def _scopes(claim: object) -> set[str]:
    if isinstance(claim, str):
        return set(claim.split())
    return set(map(str, claim)) if isinstance(claim, list) else set()


def _json_part(part: str) -> dict[str, Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise InvalidToken("malformed token") from error
    if not isinstance(found, dict):
        raise InvalidToken("malformed token")
    return found


KeyLookup = Callable[[str | None], Any]
"""Finds the key of a provider (a PyJWK) by its id; None if it is unknown."""


@dataclass(frozen=True)
class SecuredValidator:
    """Kafka's OAuthBearerValidatorCallbackHandler: a signature that one of the keys verifies."""

    find_key: KeyLookup
    expected_audience: tuple[str, ...] | None = None
    expected_issuer: str | None = None
    clock_skew_s: int = 30
    scope_claim: str = "scope"
    sub_claim: str = "sub"

    def __call__(self, token: str) -> ValidToken:
        """See TokenValidator."""
        # Imported here: few brokers have OAUTHBEARER, and it takes 0.1 s.
        import jwt

        try:
            key = self.find_key(jwt.get_unverified_header(token).get("kid"))
            if key is None:
                raise InvalidToken("signed with an unknown key")
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(_ALGORITHMS.get(key.key_type or "", ())),
                audience=self.expected_audience,
                issuer=self.expected_issuer,
                leeway=self.clock_skew_s,
                options={"require": ["exp", "iat"], "verify_sub": False},
            )
        except jwt.PyJWTError as error:
            raise InvalidToken(str(error)) from error
        name = claims.get(self.sub_claim)
        if not isinstance(name, str) or not name.strip():
            raise InvalidToken(f"no claim {self.sub_claim}")
        if self.scope_claim in claims and not isinstance(claims[self.scope_claim], str | list):
            raise InvalidToken(f"the claim {self.scope_claim} is malformed")
        return ValidToken(name.strip(), int(claims["exp"] * 1000))


def parse_jwks(text: str) -> Mapping[str | None, Any]:
    """The keys of a JWKS by their id; ValueError if it is malformed or has no usable key."""
    import jwt

    try:
        keys: Iterable[Any] = jwt.PyJWKSet.from_json(text).keys
    except (jwt.PyJWTError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"malformed JWKS: {error}") from error
    usable = {key.key_id: key for key in keys if key.key_type in _ALGORITHMS}
    if not usable:
        raise ValueError("the JWKS contains no public key")
    return usable
