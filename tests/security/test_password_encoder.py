"""Passwords as Kafka's PasswordEncoder encrypted them (recorded), and as we do."""

from pathlib import Path

import pytest

from broker.config import ConfigError
from broker.security.password_encoder import PasswordEncoder

CBC, GCM = (
    (Path(__file__).parents[1] / "golden" / "keystores" / "passwords.txt").read_text().splitlines()
)


@pytest.mark.parametrize("text", [CBC, GCM], ids=["CBC, SHA512", "GCM, SHA1"])
def test_what_kafka_encrypted_is_decrypted(text: str) -> None:
    assert PasswordEncoder("the-secret").decode(text) == "pass-wörd"


@pytest.mark.parametrize("cipher", ["AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"])
@pytest.mark.parametrize("password", ["", "x", "sixteen-letters!", "pass-wörd" * 20])
def test_password_survives(cipher: str, password: str) -> None:
    encoder = PasswordEncoder("s", cipher=cipher, key_length=256, iterations=1024)
    text = encoder.encode(password)
    assert encoder.decode(text) == password
    assert encoder.encode(password) != text  # another salt
    assert password not in text or len(password) < 2


@pytest.mark.parametrize("text", [CBC, GCM, "", "nonsense", "salt:!,keyLength:1"])
def test_wrong_secret_and_malformed_text_are_errors(text: str) -> None:
    with pytest.raises(ConfigError, match="could not be decoded"):
        PasswordEncoder("another-secret").decode(text)


def test_old_secret_still_decrypts() -> None:
    encoder = PasswordEncoder("new-secret", "the-secret")
    assert encoder.decode(CBC) == "pass-wörd"
    assert not encoder.is_current(CBC)
    assert encoder.is_current(encoder.encode("x"))


def test_secret_is_not_in_the_repr() -> None:
    assert "hidden" not in repr(PasswordEncoder("hidden", "hidden"))
