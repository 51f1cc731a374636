"""Validated security settings of Java clients, from which both clients are configured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from broker.security.scram import ScramMechanism
from broker.security.tls import TlsSettings
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.security import oauth
from kctl.cli.security.jaas import parse_jaas
from kctl.cli.security.oauth import OAuthLogin
from kctl.cli.security.stores import Ask, tls_settings

MECHANISMS = ("PLAIN", *(mechanism.value for mechanism in ScramMechanism), oauth.MECHANISM)
_MODULES = {"PLAIN": "PlainLoginModule"} | dict.fromkeys(ScramMechanism, "ScramLoginModule")

_LOGIN_HANDLERS = ("OAuthBearerUnsecuredLoginCallbackHandler", "OAuthBearerLoginCallbackHandler")
"""The login handlers of Kafka's client for OAUTHBEARER; the first one is the default."""

_UNHEARD = (
    "ssl.cipher.suites",
    "ssl.engine.factory.class",
    "sasl.client.callback.handler.class",
    "sasl.login.class",
)
"""Settings that only Java supports: ignoring them would weaken security."""


class SecurityProtocol(StrEnum):
    """Security protocols of listeners."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True)
class Credentials:
    """SASL mechanism and credentials."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    is_token: bool = False
    """Whether they are a delegation token: its id and its HMAC."""


@dataclass(frozen=True)
class SecuritySettings:
    """All security settings; the default is PLAINTEXT."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsSettings | None = None
    credentials: Credentials | OAuthLogin | None = None


def read_security(properties: Mapping[str, str], ask: Ask) -> SecuritySettings:
    """Parse client.properties; `ask` is called for a missing password.

    CliError for settings that kctl does not support: ignoring them would weaken security.
    """
    protocol = _protocol(properties.get("security.protocol", "PLAINTEXT"))
    if protocol is SecurityProtocol.PLAINTEXT:
        return SecuritySettings()
    for key in _UNHEARD:
        if properties.get(key):
            raise _usage(f"kctl does not support the setting {key}", "remove it")
    has_tls = protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
    return SecuritySettings(
        protocol,
        tls_settings(properties, ask) if has_tls else None,
        None if protocol is SecurityProtocol.SSL else _credentials(properties, ask),
    )


def _protocol(text: str) -> SecurityProtocol:
    try:
        return SecurityProtocol(text.strip().upper())
    except ValueError:
        known = ", ".join(SecurityProtocol)
        raise _usage(f"unknown security.protocol {text!r}", f"expected one of: {known}") from None


def _credentials(properties: Mapping[str, str], ask: Ask) -> Credentials | OAuthLogin:
    mechanism = (
        properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or ""
    ).strip()
    if mechanism not in MECHANISMS:
        found = f"sasl.mechanism={mechanism}" if mechanism else "sasl.mechanism is missing"
        known = " and ".join([", ".join(MECHANISMS[:-1]), MECHANISMS[-1]])
        raise _usage(f"the settings have {found}", f"kctl supports {known}")
    if mechanism == oauth.MECHANISM:
        return _oauth_login(properties)
    username, password, is_token = _login(properties, mechanism)
    if username is None:
        raise _usage(
            f"{mechanism} requires a user name",
            "set sasl.jaas.config or sasl.username in client.properties, or KCTL_SASL_USERNAME",
        )
    password = password if password is not None else ask(f"Password of {username}")
    if password is None:
        raise _usage(
            f"{mechanism} requires the password of {username}",
            "set it in client.properties, or KCTL_SASL_PASSWORD, or KCTL_SASL_PASSWORD_FILE",
        )
    return Credentials(mechanism, username, password, is_token)


def _login(properties: Mapping[str, str], mechanism: str) -> tuple[str | None, str | None, bool]:
    """User name and password, and whether they are a delegation token.

    sasl.username and sasl.password override JAAS.
    """
    options = _jaas_options(properties, mechanism, _MODULES[mechanism])
    return (
        properties.get("sasl.username", options.get("username")),
        properties.get("sasl.password", options.get("password")),
        mechanism != "PLAIN" and options.get("tokenauth", "").lower() == "true",
    )


def _jaas_options(properties: Mapping[str, str], mechanism: str, wanted: str) -> Mapping[str, str]:
    if not (text := properties.get("sasl.jaas.config")):
        return {}
    module, options = parse_jaas(text)
    if module != wanted:
        raise _usage(
            f"sasl.jaas.config names {module}, but sasl.mechanism={mechanism}",
            f"{mechanism} belongs to {wanted}",
        )
    return options


def _oauth_login(properties: Mapping[str, str]) -> OAuthLogin:
    handler = properties.get("sasl.login.callback.handler.class", "").rpartition(".")[2]
    if handler not in ("", *_LOGIN_HANDLERS):
        raise _usage(
            f"kctl does not support sasl.login.callback.handler.class={handler}",
            f"it supports {' and '.join(_LOGIN_HANDLERS)}",
        )
    url = properties.get("sasl.oauthbearer.token.endpoint.url")
    if handler == _LOGIN_HANDLERS[1] and not url:
        raise _usage(f"{handler} requires sasl.oauthbearer.token.endpoint.url", "set it")
    return OAuthLogin(
        dict(_jaas_options(properties, oauth.MECHANISM, oauth.LOGIN_MODULE)),
        None if handler == _LOGIN_HANDLERS[0] else url,
        connect_timeout_s=_seconds(properties, "sasl.login.connect.timeout.ms", 10_000),
        retry_for_s=_seconds(properties, "sasl.login.retry.backoff.max.ms", 10_000),
        retry_pause_s=_seconds(properties, "sasl.login.retry.backoff.ms", 100),
        urlencode=properties.get("sasl.oauthbearer.header.urlencode", "").lower() == "true",
    )


def _seconds(properties: Mapping[str, str], name: str, default_ms: int) -> float:
    text = properties.get(name, str(default_ms)).strip()
    if not text.isdecimal():
        raise _usage(f"{name}={text} is not a number of milliseconds", "correct it")
    return max(int(text), 1) / 1000


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
