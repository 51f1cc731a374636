"""TLS contexts from PEM: what is accepted, and the errors for the rest."""

import ssl
from pathlib import Path

import pytest

from broker.security.tls import (
    NotPem,
    TlsError,
    TlsSettings,
    client_context,
    pem_blocks,
    read_pem,
)
from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def test_only_the_configured_authority_is_trusted(authority: Authority) -> None:
    context = client_context(TlsSettings(trusted=authority.certificate))
    [trusted] = context.get_ca_certs()
    assert "authority of the tests" in str(trusted["subject"])
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_without_hostname_check_the_certificate_is_still_verified() -> None:
    context = client_context(TlsSettings(check_hostname=False))
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("locked", "given", "words"),
    [
        ("right", "wrong", "password of the private key is wrong"),
        ("right", None, "requires a password"),
    ],
)
def test_encrypted_key_requires_its_password(
    authority: Authority, locked: str, given: str | None, words: str
) -> None:
    own = authority.certificate_for("alice", password=locked)
    with pytest.raises(TlsError, match=words):
        client_context(TlsSettings(certificates=own.pem, key_password=given))
    client_context(TlsSettings(certificates=own.pem, key_password=locked))


def test_key_of_another_certificate_is_rejected(authority: Authority) -> None:
    mixed = authority.certificate_for("a").certificate + authority.certificate_for("b").key
    with pytest.raises(TlsError, match="does not belong"):
        client_context(TlsSettings(certificates=mixed))


def test_malformed_certificate_is_rejected_without_quoting_it() -> None:
    with pytest.raises(TlsError) as caught:
        client_context(TlsSettings(trusted="-----BEGIN CERTIFICATE-----\nsecret\n"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2", "JKS"),
        (b"\x30\x82\x05\x8a", "PKCS12"),
        (b"hello", "non-PEM"),
    ],
)
def test_java_formats_are_recognized(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "store"
    path.write_bytes(data)
    with pytest.raises(NotPem) as caught:
        read_pem(str(path))
    assert caught.value.kind == kind


def test_error_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match="no-such-file"):
        read_pem(str(tmp_path / "no-such-file"))


def test_certificates_and_keys_of_one_file_are_separated(authority: Authority) -> None:
    own = authority.certificate_for("alice")
    assert pem_blocks(f"text\n{own.pem}{authority.certificate}") == (
        own.certificate + authority.certificate,
        own.key,
    )


def test_repr_contains_no_secrets() -> None:
    assert "hidden" not in repr(TlsSettings(certificates="hidden", key_password="hidden"))
