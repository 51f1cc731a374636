"""Java's key and trust stores (JKS and PKCS12) as the PEM texts that `TlsSettings` takes.

The format is recognized by the file's first bytes, whatever `ssl.keystore.type` says: Java reads
JKS as PKCS12 and vice versa too. PEM files pass unchanged.

JKS, all numbers big-endian:

    u4 magic FEEDFEED, u4 version 1 or 2, u4 number of entries
    per entry: u4 tag, utf alias, u8 time
        tag 1, private key: u4 length, EncryptedPrivateKeyInfo; u4 number, certificates of the chain
        tag 2, trusted:     certificate
    certificate: utf type (version 2 only), u4 length, DER
    20 bytes: SHA-1 of the password, the words "Mighty Aphrodite", and everything before

    utf: u2 length, text. Passwords enter digests as UTF-16BE.
    Key: 20 bytes salt, key XOR keystream, SHA-1 of password and key. The keystream is
    SHA-1(password, salt), then SHA-1(password, the 20 bytes before), and so on.
"""

import hashlib
import hmac
import ssl
import struct
import textwrap
from base64 import b64encode
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.security.der import DerError, read_all, read_first
from broker.security.tls import DER_SEQUENCE, JKS_MAGIC, PEM_BEGIN, NotPem, TlsError

if TYPE_CHECKING:
    from cryptography import x509

_SALT_BYTES: Final = 20
_DIGEST_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"
_PRIVATE_KEY: Final = 1
_TRUSTED: Final = 2


class WrongPassword(TlsError):
    """The store, or its key, cannot be opened with this password."""

    def __init__(self, path: str, is_given: bool) -> None:
        problem = "is wrong, or the file is damaged" if is_given else "is required"
        super().__init__(f"{path}: the password of the store {problem}")


class StoreContents(NamedTuple):
    """What a store holds, as PEM texts."""

    trusted: tuple[str, ...]
    """Certificates of trusted authorities."""
    chain: tuple[str, ...] = ()
    """The own certificate, then those of its issuers; empty in a trust store."""
    key: str = ""
    """The private key, not encrypted any more."""

    def __repr__(self) -> str:
        return f"StoreContents({len(self.trusted)} trusted, {len(self.chain)} own)"


def read_key_store(path: str, password: str | None, key_password: str | None = None) -> str:
    """The own certificate chain and private key of a store, for `TlsSettings.certificates`.

    `key_password` is the password of the key, if it differs from the store's. The key of a PEM file
    stays encrypted: its password goes into `TlsSettings.key_password`. TlsError if the store cannot
    be used.
    """
    data = _read(path)
    if PEM_BEGIN.encode() in data:
        return data.decode("latin-1")
    contents = read_store(path, data, password, key_password)
    if not contents.key:
        raise TlsError(f"{path} has no private key")
    return "".join((*contents.chain, contents.key))


def read_trust_store(path: str, password: str | None) -> str:
    """The trusted certificates of a store, for `TlsSettings.trusted`; TlsError if it has none."""
    data = _read(path)
    if PEM_BEGIN.encode() in data:
        return data.decode("latin-1")
    contents = read_store(path, data, password)
    if not contents.trusted:
        raise TlsError(f"{path} has no trusted certificate")
    return "".join(contents.trusted)


def read_store(
    path: str, data: bytes, password: str | None, key_password: str | None = None
) -> StoreContents:
    """Open the store `data`; `path` is for messages only."""
    try:
        if data.startswith(JKS_MAGIC):
            return _read_jks(path, data, password, key_password or password)
        if data.startswith(DER_SEQUENCE):
            return _read_pkcs12(path, data, password)
    except (DerError, struct.error, UnicodeDecodeError) as error:
        raise TlsError(f"{path} is damaged") from error
    raise NotPem(path, "non-PEM")


def _read(path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise TlsError(f"cannot read {path}: {error.strerror}") from error


def _read_pkcs12(path: str, data: bytes, password: str | None) -> StoreContents:
    # Imported here: few stores are PKCS12, and it takes 0.1 s.
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        store = load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise WrongPassword(path, password is not None) from error
    others = [found.certificate for found in store.additional_certs]
    if store.key is None or store.cert is None:
        return StoreContents(tuple(_x509_pem(certificate) for certificate in others))
    chain = _chain(store.cert.certificate, others)
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    trusted = tuple(_x509_pem(other) for other in others if other not in chain)
    return StoreContents(trusted, tuple(map(_x509_pem, chain)), key)


def _chain(own: "x509.Certificate", others: "list[x509.Certificate]") -> "list[x509.Certificate]":
    """The own certificate and its issuers in order; the rest of a store is not sent to peers."""
    chain = [own]
    by_subject = {other.subject.public_bytes(): other for other in others}
    while issuer := by_subject.pop(chain[-1].issuer.public_bytes(), None):
        chain.append(issuer)
    return chain


def _x509_pem(certificate: "x509.Certificate") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


class _Reader:
    """Reads the fields of a JKS file in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, num_bytes: int) -> bytes:
        end = self._position + num_bytes
        if end > len(self._data):
            raise DerError("truncated JKS")
        found = self._data[self._position : end]
        self._position = end
        return found

    def number(self, num_bytes: int = 4) -> int:
        return int.from_bytes(self.take(num_bytes))

    def sized(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.take(self.number(2)).decode()


def _read_jks(
    path: str, data: bytes, password: str | None, key_password: str | None
) -> StoreContents:
    """The first key entry and all trusted certificates; not verified without a password."""
    if password is not None and not _is_intact(data, password):
        raise WrongPassword(path, is_given=True)
    reader = _Reader(data[len(JKS_MAGIC) : -_DIGEST_BYTES])
    version = reader.number()
    trusted: list[str] = []
    chain: tuple[str, ...] = ()
    key = ""
    for _ in range(reader.number()):
        tag = reader.number()
        reader.text()  # alias
        reader.number(8)  # time
        if tag == _TRUSTED:
            trusted.append(_jks_certificate(reader, version))
        elif tag == _PRIVATE_KEY:
            encrypted = reader.sized()
            found = tuple(_jks_certificate(reader, version) for _ in range(reader.number()))
            if not key:
                key, chain = _jks_key(path, encrypted, key_password), found
        else:
            raise DerError("unknown kind of entry")
    return StoreContents(tuple(trusted), chain, key)


def _is_intact(data: bytes, password: str) -> bool:
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    found = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + body)  # noqa: S324 — the format
    return hmac.compare_digest(found.digest(), digest)


def _jks_certificate(reader: _Reader, version: int) -> str:
    if version > 1:
        reader.text()  # X.509
    return ssl.DER_cert_to_PEM_cert(reader.sized())


def _jks_key(path: str, encrypted: bytes, password: str | None) -> str:
    if password is None:
        raise WrongPassword(path, is_given=False)
    _, wrapped = read_all(read_first(encrypted).content)
    sealed, secret = wrapped.content, password.encode("utf-16-be")
    salt, body = sealed[:_SALT_BYTES], sealed[_SALT_BYTES:-_DIGEST_BYTES]
    stream = b"".join(islice(_keystream(secret, salt), len(body) // _DIGEST_BYTES + 1))
    key = bytes(one ^ other for one, other in zip(body, stream, strict=False))
    digest = hashlib.sha1(secret + key).digest()  # noqa: S324 — the format
    if not hmac.compare_digest(digest, sealed[-_DIGEST_BYTES:]):
        raise TlsError(f"{path}: the password of the private key is wrong")
    lines = "\n".join(textwrap.wrap(b64encode(key).decode(), 64))
    return f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"


def _keystream(secret: bytes, salt: bytes) -> Iterator[bytes]:
    block = salt
    while True:
        block = hashlib.sha1(secret + block).digest()  # noqa: S324 — the format
        yield block
