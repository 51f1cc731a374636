"""TLS contexts of listeners: own certificate, trusted certificates, protocols and ciphers."""

import ssl
from dataclasses import dataclass
from typing import Final

from broker.security.cipher_suites import TLS13_SUITES, openssl_name
from broker.security.tls import TlsError, TlsSettings, load_own_certificate, load_trusted

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@dataclass(frozen=True)
class ServerTlsSettings:
    """The TLS settings of one listener."""

    identity: TlsSettings
    client_auth: str = "none"
    """Whether clients must have a certificate: none, requested or required."""
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    """Empty: those that OpenSSL considers secure."""


def server_context(settings: ServerTlsSettings) -> ssl.SSLContext:
    """A context for inbound connections; TlsError if the settings are not usable."""
    identity = settings.identity
    if not identity.certificates:
        raise TlsError("a TLS listener requires a key store: set ssl.keystore.location")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    # Renegotiation costs the broker far more CPU than the client, so clients could abuse it.
    context.options |= ssl.OP_NO_RENEGOTIATION
    load_own_certificate(context, identity.certificates, identity.key_password)
    if identity.trusted is not None:
        load_trusted(context, identity.trusted)
    elif settings.client_auth != "none":
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    restrict(context, settings.protocols, settings.cipher_suites)
    return context


def restrict(
    context: ssl.SSLContext, protocols: tuple[str, ...], cipher_suites: tuple[str, ...]
) -> None:
    """Allow only these protocols and suites; TlsError for unknown ones.

    The suites of TLS 1.3 cannot be chosen one by one in Python; without any of them TLS 1.3 is
    disabled, and with nothing but them TLS 1.2.
    """
    unknown = sorted(set(protocols) - _VERSIONS.keys())
    if unknown or not protocols:
        known = " and ".join(_VERSIONS)
        raise TlsError(f"ssl.enabled.protocols: {', '.join(unknown) or 'empty'}; known are {known}")
    enabled = {_VERSIONS[name] for name in protocols}
    if cipher_suites:
        older = [suite for suite in cipher_suites if suite not in TLS13_SUITES]
        if len(older) == len(cipher_suites):
            enabled.discard(ssl.TLSVersion.TLSv1_3)
        if older:
            _set_ciphers(context, older)
        else:
            enabled.discard(ssl.TLSVersion.TLSv1_2)
    if not enabled:
        raise TlsError("ssl.cipher.suites contains no suite of the enabled protocols")
    context.minimum_version, context.maximum_version = min(enabled), max(enabled)


def _set_ciphers(context: ssl.SSLContext, suites: list[str]) -> None:
    try:
        context.set_ciphers(":".join(map(openssl_name, suites)))
    except ssl.SSLError as error:
        raise TlsError(f"ssl.cipher.suites: none of {', '.join(suites)} is available") from error
