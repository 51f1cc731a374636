"""Validated security settings of Java clients, from which both clients are configured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from broker.security.scram import ScramMechanism
from broker.security.tls import NotPem, TlsError, TlsSettings, read_pem
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.security.jaas import parse_jaas

MECHANISMS = ("PLAIN", *(mechanism.value for mechanism in ScramMechanism))
_MODULES = {"PLAIN": "PlainLoginModule"} | dict.fromkeys(ScramMechanism, "ScramLoginModule")

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


@dataclass(frozen=True)
class SecuritySettings:
    """All security settings; the default is PLAINTEXT."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: TlsSettings | None = None
    credentials: Credentials | None = None


Ask = Callable[[str], str | None]


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
        _tls(properties, ask) if has_tls else None,
        None if protocol is SecurityProtocol.SSL else _credentials(properties, ask),
    )


def _protocol(text: str) -> SecurityProtocol:
    try:
        return SecurityProtocol(text.strip().upper())
    except ValueError:
        known = ", ".join(SecurityProtocol)
        raise _usage(f"unknown security.protocol {text!r}", f"expected one of: {known}") from None


def _credentials(properties: Mapping[str, str], ask: Ask) -> Credentials:
    mechanism = (
        properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or ""
    ).strip()
    if mechanism not in MECHANISMS:
        found = f"sasl.mechanism={mechanism}" if mechanism else "sasl.mechanism is missing"
        known = " and ".join([", ".join(MECHANISMS[:-1]), MECHANISMS[-1]])
        raise _usage(f"the settings have {found}", f"kctl supports {known}")
    username, password = _login(properties, mechanism)
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
    return Credentials(mechanism, username, password)


def _login(properties: Mapping[str, str], mechanism: str) -> tuple[str | None, str | None]:
    """User name and password; sasl.username and sasl.password override JAAS."""
    options: Mapping[str, str] = {}
    if text := properties.get("sasl.jaas.config"):
        module, options = parse_jaas(text)
        if module != _MODULES[mechanism]:
            raise _usage(
                f"sasl.jaas.config names {module}, but sasl.mechanism={mechanism}",
                f"{mechanism} belongs to {_MODULES[mechanism]}",
            )
    return (
        properties.get("sasl.username", options.get("username")),
        properties.get("sasl.password", options.get("password")),
    )


def _tls(properties: Mapping[str, str], ask: Ask) -> TlsSettings:
    certificates = _own_certificates(properties)
    password = properties.get("ssl.key.password")
    if password is None and certificates and "ENCRYPTED" in certificates:
        password = ask("Password of the private key")
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", "", "none"):
        raise _usage(
            f"unknown ssl.endpoint.identification.algorithm {algorithm!r}",
            "use https, or an empty value to disable the check",
        )
    return TlsSettings(
        trusted=_pem(properties, "ssl.truststore", "ssl.truststore.certificates"),
        certificates=certificates,
        key_password=password,
        check_hostname=algorithm == "https",
    )


def _own_certificates(properties: Mapping[str, str]) -> str | None:
    """Certificate chain and key: two settings, or one file with both."""
    chain = properties.get("ssl.keystore.certificate.chain")
    key = properties.get("ssl.keystore.key")
    if chain and key:
        return f"{_lines(chain)}\n{_lines(key)}\n"
    if chain or key:
        missing = "ssl.keystore.key" if chain else "ssl.keystore.certificate.chain"
        raise _usage(f"{missing} is missing", "a certificate requires its key")
    return _pem(properties, "ssl.keystore")


def _pem(properties: Mapping[str, str], store: str, inline: str = "") -> str | None:
    """The PEM text of a store, inline or from a file; None if it is not set."""
    if text := properties.get(inline):
        return _lines(text)
    if not (path := properties.get(f"{store}.location")):
        return None
    try:
        return read_pem(path)
    except NotPem as error:
        raise CliError(
            f"{error}, and kctl reads PEM", _conversion(error, store), ExitStatus.USAGE
        ) from error
    except TlsError as error:
        raise CliError(str(error), f"{store}.location names it") from error


def _conversion(error: NotPem, store: str) -> str:
    """The command that converts a Java store to PEM."""
    path, pem = error.path, f"{error.path.rpartition('.')[0] or error.path}.pem"
    if store == "ssl.truststore" and error.kind in ("JKS", "PKCS12"):
        return f"keytool -list -rfc -keystore {path} > {pem}; then use {pem}"
    to_pem = f"openssl pkcs12 -in {{}} -out {pem}; then name {pem}"
    if error.kind == "JKS":
        p12 = f"{path}.p12"
        convert = f"keytool -importkeystore -srckeystore {path} -destkeystore {p12}"
        return f"{convert} -deststoretype PKCS12; {to_pem.format(p12)}"
    if error.kind == "PKCS12":
        return to_pem.format(path)
    return "a PEM file has lines like -----BEGIN CERTIFICATE-----"


def _lines(pem: str) -> str:
    """In a properties file, line ends of inline PEM may be written as \n."""
    return pem.replace("\\n", "\n")


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
