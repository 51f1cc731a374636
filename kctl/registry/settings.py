"""Settings of the registry client, under the names of Confluent's serializers.

    schema.registry.url                one URL or several, separated by commas
    basic.auth.credentials.source      USER_INFO, URL or SASL_INHERIT
    basic.auth.user.info               user:password
    bearer.auth.credentials.source     STATIC_TOKEN
    bearer.auth.token
    schema.registry.ssl.*              as ssl.* of a Kafka client

All but the first are also understood with the prefix `schema.registry.`.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from broker.security.tls import TlsSettings
from kctl.cli.errors import usage_error
from kctl.cli.options import Session
from kctl.cli.security.secrets import ask_secret
from kctl.cli.security.stores import Ask, tls_settings

URL = "schema.registry.url"
PREFIX = "schema.registry."


@dataclass(frozen=True)
class RegistrySettings:
    """Where a registry is, and how to log in to it."""

    urls: tuple[str, ...]
    """The same registry at one address or several, without credentials and final slash."""
    authorization: str | None = field(default=None, repr=False)
    """Value of the Authorization header."""
    tls: TlsSettings | None = field(default=None, repr=False)
    timeout_s: float = 30


def registry_settings(session: Session, url: str | None = None) -> RegistrySettings | None:
    """The registry at `url`, else the one of client.properties; None if neither is set."""
    properties = session.client_properties()
    if not (text := url or properties.get(URL, "")):
        return None
    return parse_settings(
        text,
        properties,
        lambda what: ask_secret(what) if session.may_ask else None,
        session.timeout,
    )


def required_settings(session: Session, url: str | None = None) -> RegistrySettings:
    """As `registry_settings`; a usage error instead of None."""
    if (found := registry_settings(session, url)) is None:
        raise usage_error(
            "no schema registry specified",
            f"use --registry URL, set KCTL_SCHEMA_REGISTRY_URL, or {URL} in client.properties",
        )
    return found


def parse_settings(
    url: str, properties: Mapping[str, str], ask: Ask, timeout_s: float = 30
) -> RegistrySettings:
    """Settings for `url`; a usage error if one of them is not supported."""
    parts = [_parse_url(one.strip()) for one in url.split(",") if one.strip()]
    if not parts:
        raise usage_error(f"{url!r} is not a URL", "e.g. http://localhost:8081")
    own = {key.removeprefix(PREFIX): value for key, value in properties.items() if key != URL}
    is_tls = any(address.startswith("https:") for address, _ in parts)
    ssl = {
        key.removeprefix(PREFIX): value
        for key, value in properties.items()
        if key.startswith(f"{PREFIX}ssl.")
    }
    return RegistrySettings(
        tuple(address for address, _ in parts),
        _authorization(own, next((login for _, login in parts if login), None)),
        tls_settings(ssl, ask) if is_tls else None,
        timeout_s,
    )


def _parse_url(text: str) -> tuple[str, str | None]:
    """The address and the `user:password` of a URL."""
    try:
        url = urlsplit(text)
        _ = url.port  # a ValueError if it is not a number
    except ValueError as error:
        raise usage_error(f"{text!r} is not a URL: {error}", "e.g. http://localhost:8081") from None
    if url.scheme not in ("http", "https") or not url.hostname:
        raise usage_error(f"{text!r} is not the URL of a registry", "e.g. http://localhost:8081")
    place = url.netloc.rpartition("@")[2]
    address = urlunsplit((url.scheme, place, url.path.rstrip("/"), "", ""))
    login = unquote(f"{url.username}:{url.password or ''}") if url.username else None
    return address, login


def _authorization(properties: Mapping[str, str], from_url: str | None) -> str | None:
    """The Authorization header; credentials that are set need no `….credentials.source`."""
    if token := _bearer_token(properties):
        return f"Bearer {token}"
    if login := _login(properties, from_url):
        return f"Basic {base64.b64encode(login.encode()).decode()}"
    return None


def _bearer_token(properties: Mapping[str, str]) -> str | None:
    token = properties.get("bearer.auth.token")
    source = properties.get("bearer.auth.credentials.source", "STATIC_TOKEN" if token else "")
    if source not in ("", "STATIC_TOKEN"):
        raise usage_error(
            f"bearer.auth.credentials.source={source} is not supported",
            "use STATIC_TOKEN with bearer.auth.token",
        )
    if source and not token:
        raise usage_error("bearer.auth.token is missing", "set it, or KCTL_BEARER_AUTH_TOKEN")
    return token


def _login(properties: Mapping[str, str], from_url: str | None) -> str | None:
    user_info = properties.get("basic.auth.user.info")
    source = properties.get("basic.auth.credentials.source", "USER_INFO" if user_info else "URL")
    if source == "URL":
        return from_url
    if source == "USER_INFO":
        if not user_info or ":" not in user_info:
            raise usage_error(
                "basic.auth.user.info must be USER:PASSWORD",
                "set it, or KCTL_BASIC_AUTH_USER_INFO",
            )
        return user_info
    if source == "SASL_INHERIT":
        return _sasl_login(properties)
    raise usage_error(
        f"unknown basic.auth.credentials.source {source!r}",
        "expected URL, USER_INFO or SASL_INHERIT",
    )


def _sasl_login(properties: Mapping[str, str]) -> str:
    from kctl.cli.security.jaas import parse_jaas

    jaas = properties.get("sasl.jaas.config")
    options = parse_jaas(jaas)[1] if jaas else {}
    name = properties.get("sasl.username", options.get("username"))
    password = properties.get("sasl.password", options.get("password"))
    if not name or password is None:
        raise usage_error(
            "basic.auth.credentials.source=SASL_INHERIT requires the SASL user name and password",
            "set sasl.jaas.config, or sasl.username and sasl.password",
        )
    return f"{name}:{password}"
