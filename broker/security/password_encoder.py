"""Passwords in dynamic settings, encrypted as Kafka's EncryptingPasswordEncoder does it.

    keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,
    salt:…,iterations:4096,encryptedPassword:…,passwordLength:n,initializationVector:…

Binary values are base64. The key is derived from `password.encoder.secret` by PBKDF2; with
AES/GCM/NoPadding there is an `authenticationTagSize` beside the initialization vector.
"""

import binascii
import hashlib
import os
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Final

from broker.config import ConfigError

_HASHES: Final = {"PBKDF2WithHmacSHA512": "sha512", "PBKDF2WithHmacSHA256": "sha256"} | {
    "PBKDF2WithHmacSHA1": "sha1"
}
_DEFAULT_KEY_FACTORY: Final = "PBKDF2WithHmacSHA512"
_CBC: Final = "AES/CBC/PKCS5Padding"
_GCM: Final = "AES/GCM/NoPadding"
_SALT_BYTES: Final = 256
_BLOCK_BYTES: Final = 16
_GCM_IV_BYTES: Final = 12
_GCM_TAG_BYTES: Final = 16
_FAILED: Final = "Password could not be decoded"


@dataclass(frozen=True)
class PasswordEncoder:
    """Encrypts with `secret`; decrypts with it, or with `old_secret`."""

    secret: str = field(repr=False)
    old_secret: str | None = field(default=None, repr=False)
    key_factory: str | None = None
    cipher: str = _CBC
    key_length: int = 128
    iterations: int = 4096

    def encode(self, password: str) -> str:
        """The text to store."""
        factory, salt = self.key_factory or _DEFAULT_KEY_FACTORY, os.urandom(_SALT_BYTES)
        key = _key(self.secret, factory, salt, self.iterations, self.key_length)
        fields = {
            "keyFactoryAlgorithm": factory,
            "cipherAlgorithm": self.cipher,
            "keyLength": str(self.key_length),
            "salt": b64encode(salt).decode(),
            "iterations": str(self.iterations),
            "passwordLength": str(len(password)),
            **_encrypt(self.cipher, key, password.encode()),
        }
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, text: str) -> str:
        """The password; ConfigError if it was encrypted with other secrets, or is malformed."""
        try:
            return _decode(self.secret, text)
        except ConfigError:
            if self.old_secret is None:
                raise
            return _decode(self.old_secret, text)

    def is_current(self, text: str) -> bool:
        """Whether the text was encrypted with the present secret."""
        try:
            _decode(self.secret, text)
        except ConfigError:
            return False
        return True


def _decode(secret: str, text: str) -> str:
    try:
        fields = dict(part.strip().split(":", 1) for part in text.split(","))
        key = _key(
            secret,
            fields["keyFactoryAlgorithm"],
            b64decode(fields["salt"]),
            int(fields["iterations"]),
            int(fields["keyLength"]),
        )
        password = _decrypt(fields, key).decode()
        expected = int(fields["passwordLength"])
    except (KeyError, ValueError, binascii.Error) as error:
        raise ConfigError(_FAILED) from error
    if len(password) != expected:
        raise ConfigError(f"{_FAILED}, sanity check of length failed")
    return password


def _key(secret: str, factory: str, salt: bytes, iterations: int, key_length: int) -> bytes:
    if factory not in _HASHES:
        known = ", ".join(_HASHES)
        raise ConfigError(f"password.encoder.keyfactory.algorithm={factory}: known are {known}")
    return hashlib.pbkdf2_hmac(_HASHES[factory], secret.encode(), salt, iterations, key_length // 8)


def _encrypt(cipher: str, key: bytes, plain: bytes) -> dict[str, str]:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if cipher == _GCM:
        vector = os.urandom(_GCM_IV_BYTES)
        encrypted = AESGCM(key).encrypt(vector, plain, None)
        more = {"authenticationTagSize": str(8 * _GCM_TAG_BYTES)}
    elif cipher == _CBC:
        vector, more = os.urandom(_BLOCK_BYTES), {}
        missing = _BLOCK_BYTES - len(plain) % _BLOCK_BYTES
        encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
        encrypted = encryptor.update(plain + bytes([missing]) * missing) + encryptor.finalize()
    else:
        raise ConfigError(f"password.encoder.cipher.algorithm={cipher}: known are {_CBC}, {_GCM}")
    return {
        "encryptedPassword": b64encode(encrypted).decode(),
        "initializationVector": b64encode(vector).decode(),
        **more,
    }


def _decrypt(fields: dict[str, str], key: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    encrypted = b64decode(fields["encryptedPassword"])
    vector = b64decode(fields["initializationVector"])
    if fields["cipherAlgorithm"] == _GCM:
        try:
            return AESGCM(key).decrypt(vector, encrypted, None)
        except InvalidTag as error:
            raise ValueError("wrong secret") from error
    decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    padded = decryptor.update(encrypted) + decryptor.finalize()
    missing = padded[-1] if padded else 0
    if not 1 <= missing <= _BLOCK_BYTES or padded[-missing:] != bytes([missing]) * missing:
        raise ValueError("wrong secret")
    return padded[:-missing]
