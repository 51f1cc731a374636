"""OAUTHBEARER: access tokens as Java's login handlers get them, and the client's SASL exchange.

    OAuthBearerLoginModule with unsecuredLogin… options   an unsigned token made here; tests only
    sasl.oauthbearer.token.endpoint.url=file:…            the token in a file
    sasl.oauthbearer.token.endpoint.url=https:…           client credentials grant: clientId,
                                                          clientSecret and scope in sasl.jaas.config

A token is used until four fifths of its lifetime are over.
"""

import base64
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from broker.security.sasl import Exchange, SaslError
from kctl.cli.errors import CliError, ExitStatus

MECHANISM: Final = "OAUTHBEARER"
LOGIN_MODULE: Final = "OAuthBearerLoginModule"
_SEPARATOR: Final = "\x01"
_EXTENSION_KEY: Final = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE: Final = re.compile(r"[\x21-\x7E \t\r\n]+")
_UNSECURED: Final = "unsecuredLogin"
_USED_PART: Final = 0.8
"""The part of a token's lifetime in which it is used."""


@dataclass(frozen=True)
class OAuthLogin:
    """How to get an access token; plain data, so that Spark tasks can get their own."""

    options: Mapping[str, str] = field(repr=False)
    """Of the login module."""
    endpoint_url: str | None = None
    connect_timeout_s: float = 10.0
    retry_for_s: float = 10.0
    retry_pause_s: float = 0.1
    urlencode: bool = False

    @property
    def mechanism(self) -> str:
        """The SASL mechanism."""
        return MECHANISM

    def extensions(self) -> dict[str, str]:
        """SASL extensions; CliError for names and values that the protocol does not allow."""
        prefix = "extension_" if self.endpoint_url else f"{_UNSECURED}Extension_"
        found = {
            name.removeprefix(prefix): value
            for name, value in self.options.items()
            if name.startswith(prefix)
        }
        for name, value in found.items():
            is_valid = _EXTENSION_KEY.fullmatch(name) and _EXTENSION_VALUE.fullmatch(value)
            if not is_valid or name == "auth":
                raise _usage(f"sasl.jaas.config: invalid extension {name!r}", "use letters only")
        return found


@dataclass(frozen=True)
class AccessToken:
    """A token, and what its claims say."""

    text: str = field(repr=False)
    subject: str
    issued_at: float
    expires_at: float

    @property
    def is_fresh(self) -> bool:
        """Whether less than four fifths of its lifetime are over."""
        lifetime = self.expires_at - self.issued_at
        return time.time() < self.issued_at + _USED_PART * lifetime


class TokenSource:
    """The token of one run, retrieved again when it becomes old."""

    def __init__(self, login: OAuthLogin) -> None:
        self._login = login
        self._token: AccessToken | None = None
        self.extensions = login.extensions()

    def token(self) -> AccessToken:
        """A token that is still valid for a while; CliError if it cannot be obtained."""
        if self._token is None or not self._token.is_fresh:
            self._token = read_token(self._retrieved())
        return self._token

    def begin(self) -> Exchange:
        """The client's side of the exchange."""
        return oauth_client(self.token().text, self.extensions)

    def for_librdkafka(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        """Its `oauth_cb`."""
        token = self.token()
        return token.text, token.expires_at, token.subject, self.extensions

    def _retrieved(self) -> str:
        if self._login.endpoint_url is None:
            return unsecured_token(self._login.options, time.time())
        from kctl.cli.security.oauth_endpoint import retrieve  # imported here: it needs urllib

        return retrieve(self._login)


def oauth_client(token: str, extensions: Mapping[str, str]) -> Exchange:
    """The client's side; a broker that refuses the token explains it in a second response."""
    pairs = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in extensions.items())]
    first = f"n,,{_SEPARATOR}{_SEPARATOR.join(pairs)}{_SEPARATOR}{_SEPARATOR}"
    refusal = yield first.encode()
    if refusal:
        yield _SEPARATOR.encode()
        raise SaslError(f"the broker refused the token: {refusal.decode(errors='replace')}")


def unsecured_token(options: Mapping[str, str], now: float) -> str:
    """An unsigned token with the claims of the options; CliError if it has no principal."""
    claims: dict[str, Any] = {"exp": now + _lifetime_s(options), "iat": now}
    for name, value in options.items():
        kind, underscore, claim = name.removeprefix(_UNSECURED).partition("Claim_")
        if not (name.startswith(_UNSECURED) and underscore and claim):
            continue
        if claim in ("iat", "exp"):
            raise _usage(f"sasl.jaas.config cannot set the claim {claim}", "remove it")
        claims[claim] = _claim(kind, name, value)
    principal = options.get(f"{_UNSECURED}PrincipalClaimName", "sub").strip() or "sub"
    if not claims.get(principal):
        raise _usage(
            f"the token has no claim {principal!r}",
            f'sasl.jaas.config needs {_UNSECURED}StringClaim_{principal}="USER"',
        )
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _lifetime_s(options: Mapping[str, str]) -> int:
    text = options.get(f"{_UNSECURED}LifetimeSeconds", "3600")
    if not text.strip().isdecimal():
        raise _usage(f"{_UNSECURED}LifetimeSeconds={text} is not a number", "e.g. 3600")
    return int(text)


def _claim(kind: str, name: str, value: str) -> Any:
    if kind == "List":  # the first character separates the items
        return value[1:].split(value[0]) if len(value) > 1 else []
    if kind != "Number":
        return value
    try:
        return float(value)
    except ValueError:
        raise _usage(f"sasl.jaas.config: {name} is not a number", "correct it") from None


def _encoded(value: Mapping[str, Any]) -> str:
    data = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read_token(text: str) -> AccessToken:
    """The claims of a token; CliError, which does not quote it, if it is not one."""
    parts = text.strip().split(".")
    try:
        header, payload, _ = parts
        padding = "=" * (-len(payload) % 4)
        claims = json.loads(base64.urlsafe_b64decode(payload + padding))
        expires_at = float(claims["exp"])
        issued_at = float(claims.get("iat", time.time()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CliError(
            "the access token is not a JWT with the claim exp",
            "check sasl.oauthbearer.token.endpoint.url",
        ) from error
    del header
    if expires_at <= time.time():
        raise CliError("the access token has expired", "get a new one")
    return AccessToken(text.strip(), str(claims.get("sub", "")), issued_at, expires_at)


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
