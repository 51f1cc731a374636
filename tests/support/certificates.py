"""An authority of our own and the certificates it signs, as PEM."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    """A certificate and its private key."""

    certificate: str
    key: str

    @property
    def pem(self) -> str:
        """Both, as Kafka takes them in one file."""
        return self.certificate + self.key

    def pkcs12(self, password: str, others: Sequence[str] = ()) -> bytes:
        """Both in a PKCS12 store, with other certificates beside them."""
        return serialize_key_and_certificates(
            b"own",
            _loaded_key(self.key),
            x509.load_pem_x509_certificate(self.certificate.encode()),
            [x509.load_pem_x509_certificate(other.encode()) for other in others],
            BestAvailableEncryption(password.encode()),
        )


class Authority:
    """A certificate authority; clients that trust `certificate` trust what it signs."""

    def __init__(self, name: str = "authority of the tests") -> None:
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.BasicConstraints(ca=True, path_length=0)
        own = _builder(self._name, self._name, self._key).add_extension(usage, critical=True)
        self.certificate = _pem(own.sign(self._key, hashes.SHA256()))

    def certificate_for(
        self, name: str, *others: str, password: str | None = None, days: int = 1
    ) -> Certificate:
        """Issue a certificate for the host or client `name`; `password` encrypts the key, if given.

        It is valid for `days` from now; if that is negative, it expired yesterday.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_host(host) for host in (name, *others)])
        signed = (
            _builder(_named(name), self._name, key, days)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        lock: KeySerializationEncryption = NoEncryption()
        if password:
            lock = BestAvailableEncryption(password.encode())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode()
        return Certificate(_pem(signed), pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 1
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5) - timedelta(days=max(0, -2 * days)))
        .not_valid_after(now + timedelta(days=days))
    )


def _loaded_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
