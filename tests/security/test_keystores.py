"""Java's key and trust stores. tests/golden/keystores: written by keytool and openssl."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from broker.security.keystores import (
    StoreContents,
    WrongPassword,
    read_key_store,
    read_trust_store,
)
from broker.security.tls import NotPem, TlsError, TlsSettings, client_context, pem_blocks
from tests.support.certificates import Authority

STORES = Path(__file__).parents[1] / "golden" / "keystores"
OWN = (STORES / "own.pem").read_text()  # exported by keytool
KEY = (STORES / "key.pem").read_text()  # exported by openssl


def numbers(key: str) -> object:
    """The numbers of a key: its encoding may contain the public part or not."""
    loaded = load_pem_private_key(key.encode(), None)
    assert isinstance(loaded, EllipticCurvePrivateKey)
    return loaded.private_numbers()


def own_context(path: Path, password: str | None, key_password: str | None = None) -> None:
    """OpenSSL takes what was read: the key belongs to the certificate."""
    client_context(TlsSettings(certificates=read_key_store(str(path), password, key_password)))


@pytest.mark.parametrize("name", ["keytool.p12", "keytool-legacy.p12", "openssl.p12"])
def test_pkcs12_key_store_gives_chain_and_key(name: str) -> None:
    found, key = pem_blocks(read_key_store(str(STORES / name), "storepass"))
    assert found == OWN
    assert numbers(key) == numbers(KEY)
    own_context(STORES / name, "storepass")


def test_jks_key_store_gives_chain_and_key() -> None:
    path = STORES / "keytool.jks"
    assert read_key_store(str(path), "storepass", "keypass1") == OWN + KEY
    own_context(path, "storepass", "keypass1")


def test_jks_key_with_its_own_password_requires_that_password() -> None:
    with pytest.raises(TlsError, match="private key is wrong"):
        read_key_store(str(STORES / "keytool.jks"), "storepass")


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_trust_store_gives_certificates(name: str) -> None:
    assert read_trust_store(str(STORES / name), "storepass") == OWN


def test_jks_trust_store_is_readable_without_password() -> None:
    assert read_trust_store(str(STORES / "trust.jks"), None) == OWN


@pytest.mark.parametrize("name", ["keytool.p12", "keytool.jks", "trust.jks", "trust.p12"])
def test_wrong_password_is_reported_without_quoting_it(name: str) -> None:
    with pytest.raises(WrongPassword, match=f"{name}.*wrong") as caught:
        read_trust_store(str(STORES / name), "canary-password")
    assert "canary" not in str(caught.value)


def test_pkcs12_without_password_names_what_is_missing() -> None:
    with pytest.raises(WrongPassword, match="required"):
        read_key_store(str(STORES / "keytool.p12"), None)


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_trust_store_is_no_key_store(name: str) -> None:
    with pytest.raises(TlsError, match="no private key"):
        read_key_store(str(STORES / name), "storepass")


def test_key_store_is_no_trust_store() -> None:
    with pytest.raises(TlsError, match="no trusted certificate"):
        read_trust_store(str(STORES / "keytool.p12"), "storepass")


def test_pem_file_passes_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "own.pem"
    path.write_text(OWN + KEY)
    assert read_key_store(str(path), None) == OWN + KEY
    assert read_trust_store(str(path), None) == OWN + KEY


def test_chain_is_in_order_and_without_other_certificates(tmp_path: Path) -> None:
    authority, stranger = Authority(), Authority("stranger")
    path = tmp_path / "chain.p12"
    own = authority.certificate_for("localhost")
    others = [stranger.certificate, authority.certificate]
    path.write_bytes(own.pkcs12("secret", others))
    assert read_key_store(str(path), "secret") == own.certificate + authority.certificate + own.key


@pytest.mark.parametrize("name", ["keytool.jks", "keytool.p12", "trust.jks"])
def test_truncated_store_is_an_error_and_nothing_else(name: str, tmp_path: Path) -> None:
    data = (STORES / name).read_bytes()
    path = tmp_path / name
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        for password in ("storepass", None):
            with pytest.raises(TlsError):
                read_key_store(str(path), password, "keypass1")


def test_other_files_and_missing_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(NotPem, match=r"notes\.txt"):
        read_trust_store(str(path), None)
    with pytest.raises(TlsError, match="no-such-file"):
        read_trust_store(str(tmp_path / "no-such-file"), None)


def test_repr_contains_no_secrets() -> None:
    assert "hidden" not in repr(StoreContents((), ("c",), "hidden"))
