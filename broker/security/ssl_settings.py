"""From the `ssl.*` settings of a listener to certificates and keys.

The rules which settings may be given together, and the messages, are those of Kafka's
DefaultSslEngineFactory.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.config import BrokerConfig, ConfigError
from broker.security.keystores import read_key_store, read_trust_store
from broker.security.tls import PEM_BEGIN, TlsError, TlsSettings
from broker.security.tls_server import ServerTlsSettings

_PEM: Final = "PEM"
_STORE_TYPES: Final = ("JKS", "PKCS12", _PEM)
_PEM_BLOCK: Final = re.compile(
    r"-+BEGIN ([A-Z0-9 ]+?)-+\s*((?:[A-Za-z-]+:[^\n]*\n)*)([A-Za-z0-9+/=\s]+)-+END \1-+"
)
_LINE: Final = 64


def tls_identity(config: BrokerConfig) -> TlsSettings:
    """Own certificate, key and trusted certificates; reads the files that are configured.

    ConfigError if settings contradict each other, TlsError if a file cannot be used.
    """
    return TlsSettings(
        trusted=_trusted(config),
        certificates=_own(config),
        key_password=config.ssl_key_password,
        check_hostname=bool(config.ssl_endpoint_identification_algorithm),
    )


def server_tls_settings(config: BrokerConfig, listener_name: str) -> ServerTlsSettings:
    """The TLS settings of a listener; see `tls_identity` for the errors."""
    own = config.for_listener(listener_name)
    client_auth = own.ssl_client_auth
    is_sasl = (config.security_protocol(listener_name) or "").startswith("SASL")
    # On a SASL listener only the setting of that listener counts, as in Kafka.
    if is_sasl and f"listener.name.{listener_name.lower()}.ssl.client.auth" not in config.originals:
        client_auth = "none"
    return ServerTlsSettings(
        tls_identity(own), client_auth, own.ssl_enabled_protocols, own.ssl_cipher_suites
    )


def store_files(config: BrokerConfig) -> Iterator[Path]:
    """The files that the certificates and keys are read from."""
    for location in (config.ssl_keystore_location, config.ssl_truststore_location):
        if location:
            yield Path(location).expanduser()


def _own(config: BrokerConfig) -> str | None:
    path, password = config.ssl_keystore_location, config.ssl_keystore_password
    is_pem = _is_pem(config.ssl_keystore_type, "ssl.keystore.type")
    if config.ssl_keystore_key or config.ssl_keystore_certificate_chain:
        _check_inline(config, is_pem=is_pem)
    if is_pem and password:
        raise ConfigError(
            "SSL key store password cannot be specified with PEM format, only key password may "
            "be specified."
        )
    if config.ssl_keystore_key:
        chain = config.ssl_keystore_certificate_chain or ""
        return pem_text(chain) + pem_text(config.ssl_keystore_key)
    if path is None:
        if password:
            raise ConfigError(
                "SSL key store is not specified, but key store password is specified."
            )
        return None
    if not is_pem and not password:
        raise ConfigError("SSL key store is specified, but key store password is not specified.")
    return read_key_store(path, password, config.ssl_key_password)


def _check_inline(config: BrokerConfig, *, is_pem: bool) -> None:
    if not config.ssl_keystore_key:
        raise ConfigError("SSL certificate chain is specified, but private key is not specified")
    if not is_pem:
        raise ConfigError(
            "SSL private key can be specified only for PEM, but key store type is "
            f"{config.ssl_keystore_type}."
        )
    if not config.ssl_keystore_certificate_chain:
        raise ConfigError("SSL private key is specified, but certificate chain is not specified.")
    if config.ssl_keystore_location:
        raise ConfigError("Both SSL key store location and separate private key are specified.")


def _trusted(config: BrokerConfig) -> str | None:
    path, password = config.ssl_truststore_location, config.ssl_truststore_password
    certificates = config.ssl_truststore_certificates
    is_pem = _is_pem(config.ssl_truststore_type, "ssl.truststore.type")
    if certificates and not is_pem:
        raise ConfigError(
            "SSL trust store certs can be specified only for PEM, but trust store type is "
            f"{config.ssl_truststore_type}."
        )
    if certificates and path:
        raise ConfigError(
            "Both SSL trust store location and separate trust certificates are specified."
        )
    if is_pem and password:
        raise ConfigError("SSL trust store password cannot be specified for PEM format.")
    if certificates:
        return pem_text(certificates)
    if path is None:
        if password:
            raise ConfigError(
                "SSL trust store is not specified, but trust store password is specified."
            )
        return None
    return read_trust_store(path, password)


def _is_pem(store_type: str, key: str) -> bool:
    if store_type.upper() not in _STORE_TYPES:
        known = ", ".join(_STORE_TYPES)
        raise ConfigError(f"{key}={store_type}: this broker reads {known}")
    return store_type.upper() == _PEM


def pem_text(text: str) -> str:
    """Inline PEM in the form that OpenSSL reads; in settings its lines may be joined by spaces."""
    found = _PEM_BLOCK.finditer(text.replace("\\n", "\n"))
    blocks = [_pem_block(*block.groups()) for block in found]
    if not blocks:
        raise TlsError(f"inline certificates and keys must contain {PEM_BEGIN}…")
    return "".join(blocks)


def _pem_block(label: str, headers: str, body: str) -> str:
    body = "".join(body.split())
    lines = [body[start : start + _LINE] for start in range(0, len(body), _LINE)]
    head = f"{headers}\n" if headers else ""
    joined = "\n".join(lines)
    return f"-----BEGIN {label}-----\n{head}{joined}\n-----END {label}-----\n"
