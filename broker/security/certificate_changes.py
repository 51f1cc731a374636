"""Whether a new certificate may replace the present one while a broker runs.

As in Kafka it must have the same subject and at least the same alternative names: a listener that
suddenly has another identity is more likely a mistake. `ssl.allow.dn.changes` and
`ssl.allow.san.changes` lift that.
"""

import ssl

from broker.config import ConfigError
from broker.security.distinguished_name import subject_of
from broker.security.tls import pem_blocks


def check_unchanged_identity(old: str, new: str, *, allow_dn: bool, allow_san: bool) -> None:
    """ConfigError if the certificate of the PEM text `new` must not replace that of `old`."""
    before, after = _first_certificate(old), _first_certificate(new)
    if before == after:
        return
    if not allow_dn and subject_of(before) != subject_of(after):
        raise ConfigError(
            "Keystore DistinguishedName does not match: "
            f"existing={{DN={subject_of(before)}}}, new={{DN={subject_of(after)}}}"
        )
    if not allow_san and not _alternative_names(before) <= _alternative_names(after):
        raise ConfigError(
            "Keystore SubjectAltNames do not match: "
            f"existing={{SAN={_listed(before)}}}, new={{SAN={_listed(after)}}}"
        )


def _first_certificate(pem: str) -> bytes:
    certificates, _ = pem_blocks(pem)
    end = "-----END CERTIFICATE-----"
    try:
        return ssl.PEM_cert_to_DER_cert(certificates.partition(end)[0] + end + "\n")
    except ValueError as error:
        raise ConfigError("the key store contains no certificate") from error


def _alternative_names(certificate: bytes) -> set[str]:
    # Imported here: only needed when a certificate changes.
    from cryptography import x509

    loaded = x509.load_der_x509_certificate(certificate)
    try:
        found = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(getattr(name, "value", name)) for name in found.value}


def _listed(certificate: bytes) -> str:
    return ", ".join(sorted(_alternative_names(certificate)))
