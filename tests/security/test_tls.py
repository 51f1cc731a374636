"""Contexts from PEM: what is accepted, and what is said of the rest."""

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


def test_only_the_named_authority_is_trusted(authority: Authority) -> None:
    context = client_context(TlsSettings(trusted=authority.certificate))
    [trusted] = context.get_ca_certs()
    assert "authority of the tests" in str(trusted["subject"])
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_hostname_check_can_be_turned_off_but_not_the_check_of_the_certificate() -> None:
    context = client_context(TlsSettings(check_hostname=False))
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("locked", "given", "words"),
    [
        ("right", "wrong", "password of the private key is wrong"),
        ("right", None, "needs a password"),
    ],
)
def test_locked_key_wants_its_password(
    authority: Authority, locked: str, given: str | None, words: str
) -> None:
    own = authority.certificate_for("alice", password=locked)
    with pytest.raises(TlsError, match=words):
        client_context(TlsSettings(certificates=own.pem, key_password=given))
    client_context(TlsSettings(certificates=own.pem, key_password=locked))


def test_key_of_another_certificate_is_noticed(authority: Authority) -> None:
    mixed = authority.certificate_for("a").certificate + authority.certificate_for("b").key
    with pytest.raises(TlsError, match="does not belong"):
        client_context(TlsSettings(certificates=mixed))


def test_certificate_that_is_none_is_refused_without_being_quoted() -> None:
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
def test_files_of_java_are_told_apart(tmp_path: Path, data: bytes, kind: str) -> None:
    path = tmp_path / "store"
    path.write_bytes(data)
    with pytest.raises(NotPem) as caught:
        read_pem(str(path))
    assert caught.value.kind == kind


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match="no-such-file"):
        read_pem(str(tmp_path / "no-such-file"))


def test_certificates_and_keys_of_one_file_are_told_apart(authority: Authority) -> None:
    own = authority.certificate_for("alice")
    assert pem_blocks(f"text\n{own.pem}{authority.certificate}") == (
        own.certificate + authority.certificate,
        own.key,
    )


def test_secrets_are_in_no_repr() -> None:
    assert "hidden" not in repr(TlsSettings(certificates="hidden", key_password="hidden"))
