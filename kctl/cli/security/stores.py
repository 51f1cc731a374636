"""TLS settings from ssl.* properties: PEM inline, or key and trust stores in PEM, PKCS12 or JKS."""

from collections.abc import Callable, Mapping

from broker.security.keystores import WrongPassword, read_key_store, read_trust_store
from broker.security.tls import NotPem, TlsError, TlsSettings
from kctl.cli.errors import CliError, ExitStatus

Ask = Callable[[str], str | None]
"""Prompts for a secret; None if there is no terminal."""


def tls_settings(properties: Mapping[str, str], ask: Ask) -> TlsSettings:
    """Parse the properties; `ask` is called for the missing password of a store or key."""
    certificates, from_store = _own_certificates(properties, ask)
    # The key of a Java store is decrypted already.
    password = None if from_store else properties.get("ssl.key.password")
    if password is None and certificates and "ENCRYPTED" in certificates:
        password = ask("Password of the private key")
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", "", "none"):
        raise _usage(
            f"unknown ssl.endpoint.identification.algorithm {algorithm!r}",
            "use https, or an empty value to disable the check",
        )
    return TlsSettings(
        trusted=_trusted(properties, ask),
        certificates=certificates,
        key_password=password,
        check_hostname=algorithm == "https",
    )


def _trusted(properties: Mapping[str, str], ask: Ask) -> str | None:
    """The trusted certificates; None if they are not set: those of the operating system."""
    if text := properties.get("ssl.truststore.certificates"):
        return _lines(text)
    if not (path := properties.get("ssl.truststore.location")):
        return None
    password = properties.get("ssl.truststore.password")
    return _opened(path, "ssl.truststore", password, ask, read_trust_store)


def _own_certificates(properties: Mapping[str, str], ask: Ask) -> tuple[str | None, bool]:
    """Certificate chain and key, and whether they come from a Java store."""
    chain = properties.get("ssl.keystore.certificate.chain")
    key = properties.get("ssl.keystore.key")
    if chain and key:
        return f"{_lines(chain)}\n{_lines(key)}\n", False
    if chain or key:
        missing = "ssl.keystore.key" if chain else "ssl.keystore.certificate.chain"
        raise _usage(f"{missing} is missing", "a certificate requires its key")
    if not (path := properties.get("ssl.keystore.location")):
        return None, False
    key_password = properties.get("ssl.key.password")
    text = _opened(
        path,
        "ssl.keystore",
        properties.get("ssl.keystore.password"),
        ask,
        lambda where, password: read_key_store(where, password, key_password),
    )
    return text, "ENCRYPTED" not in text


def _opened(
    path: str,
    store: str,
    password: str | None,
    ask: Ask,
    read: Callable[[str, str | None], str],
) -> str:
    """The PEM text of a store; prompts for a password that is required and not set."""
    try:
        return read(path, password)
    except WrongPassword as error:
        given = ask(f"Password of {path}") if password is None else None
        if given is None:
            raise _usage(str(error), f"set {store}.password") from error
        return _opened(path, store, given, ask, read)
    except NotPem as error:
        raise _usage(
            f"{path} is neither PEM, PKCS12 nor JKS",
            f"{store}.location names it; PEM has lines like -----BEGIN CERTIFICATE-----",
        ) from error
    except TlsError as error:
        raise CliError(str(error), f"{store}.location names it") from error


def _lines(pem: str) -> str:
    """In a properties file, line ends of inline PEM may be written as \\n."""
    return pem.replace("\\n", "\n")


def _usage(message: str, hint: str) -> CliError:
    return CliError(message, hint, ExitStatus.USAGE)
