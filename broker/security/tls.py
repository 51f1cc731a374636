"""TLS contexts from PEM: trusted certificates, own certificate chain and private key."""

import re
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

JKS_MAGIC = b"\xfe\xed\xfe\xed"
DER_SEQUENCE = b"\x30"
"""First byte of a PKCS#12 file, the format of Java's keytool since Java 9."""
PEM_BEGIN = "-----BEGIN "
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


class TlsError(Exception):
    """Certificates or keys are not usable; the text never quotes them."""


class NotPem(TlsError):
    """A file in one of Java's formats, or in an unknown one."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{path} is a {kind} file")
        self.path = path
        self.kind = kind


@dataclass(frozen=True)
class TlsSettings:
    """Trusted certificates and own identity, as PEM text."""

    trusted: str | None = None
    """Certificates of authorities; None: those that the operating system trusts."""
    certificates: str | None = field(default=None, repr=False)
    """The own certificate chain, followed by its private key."""
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True
    """Whether the certificate must match the host name of the connection."""


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """A context for outbound connections; TlsError if the settings are not usable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.check_hostname
    if settings.trusted is None:
        context.load_default_certs()
    else:
        load_trusted(context, settings.trusted)
    if settings.certificates:
        load_own_certificate(context, settings.certificates, settings.key_password)
    return context


def read_pem(path: str) -> str:
    """The text of a PEM file; NotPem for a JKS or PKCS#12 file."""
    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise TlsError(f"cannot read {path}: {error.strerror}") from error
    if data.startswith(JKS_MAGIC):
        raise NotPem(path, "JKS")
    text = data.decode("latin-1")
    if PEM_BEGIN not in text:
        raise NotPem(path, "PKCS12" if data.startswith(DER_SEQUENCE) else "non-PEM")
    return text


def pem_blocks(text: str) -> tuple[str, str]:
    """The certificates and the private keys of a PEM text, separately."""
    blocks = [(found[1], found[0]) for found in _PEM_BLOCK.finditer(text)]
    keys = [block for label, block in blocks if label.endswith("PRIVATE KEY")]
    certificates = [block for label, block in blocks if label == "CERTIFICATE"]
    return "\n".join([*certificates, ""]), "\n".join([*keys, ""])


def load_trusted(context: ssl.SSLContext, pem: str) -> None:
    """Trust these certificates; TlsError if they are malformed."""
    # As in Java every certificate of the store is trusted by itself, not only root authorities.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise TlsError("the trusted certificates are malformed") from error


def load_own_certificate(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Use this chain and key; TlsError if they are malformed or do not belong together."""
    # OpenSSL reads them only from a file: a temporary one, with mode 0600, deleted at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        try:
            # Without a function OpenSSL would prompt for the password on the terminal.
            context.load_cert_chain(file.name, password=lambda: password or "")
        except (ssl.SSLError, ValueError) as error:
            raise TlsError(_describe_failure(error, pem, password)) from error


def _describe_failure(error: ssl.SSLError | ValueError, pem: str, password: str | None) -> str:
    if "MISMATCH" in (getattr(error, "reason", None) or ""):
        return "the private key does not belong to the certificate"
    if "ENCRYPTED" in pem:  # OpenSSL gives many different reasons if it cannot decrypt, or none
        wrong = "the password of the private key is wrong"
        return wrong if password else "the private key requires a password"
    return "the certificate or its private key is malformed"
