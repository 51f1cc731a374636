"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as Kafka implements them.

    client-first   n,,n=USER,r=CNONCE
    server-first   r=CNONCE+SNONCE,s=SALT,i=ITERATIONS
    client-final   c=biws,r=CNONCE+SNONCE,p=PROOF
    server-final   v=SIGNATURE, or e=ERROR

Neither side sends the password: the proof shows that the client knows it, and the signature that
the broker has keys derived from it. As in Kafka, names and passwords are UTF-8 without SASLprep.
The functions above `scram_client` compute what both sides need.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from broker.security.sasl import Exchange, SaslError

MIN_ITERATIONS = 4096
"""Fewer make it cheap to guess the password from a recorded exchange; Kafka rejects them too."""

_NO_CHANNEL_BINDING = "n,,"
_SERVER_FIRST = re.compile(r"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=(?P<i>\d+)(?:,.*)?")
_SERVER_FINAL = re.compile(r"(?:e=(?P<error>[^,]*)|v=(?P<signature>[^,]+))(?:,.*)?")


class ScramMechanism(StrEnum):
    """The SCRAM mechanisms of Kafka."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """The name of the hash function in hashlib."""
        return {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[self.value]


@dataclass(frozen=True)
class ServerFirst:
    """The broker's first message: the combined nonce, and how to derive keys from the password."""

    nonce: str
    salt: bytes
    iterations: int


def salted_password(hash_name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """SaltedPassword := Hi(password, salt, i) of the RFC."""
    return hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)


def client_key(hash_name: str, salted: bytes) -> bytes:
    """ClientKey: what the client proves to know."""
    return hmac.digest(salted, b"Client Key", hash_name)


def stored_key(hash_name: str, key: bytes) -> bytes:
    """StoredKey: what a broker stores, enough to verify a proof but not to create one."""
    return hashlib.new(hash_name, key).digest()


def server_key(hash_name: str, salted: bytes) -> bytes:
    """ServerKey: what the broker proves to know."""
    return hmac.digest(salted, b"Server Key", hash_name)


def client_proof(hash_name: str, salted: bytes, auth_message: bytes) -> bytes:
    """ClientProof: the client key XOR a signature made with the stored key."""
    key = client_key(hash_name, salted)
    signature = hmac.digest(stored_key(hash_name, key), auth_message, hash_name)
    return bytes(one ^ other for one, other in zip(key, signature, strict=True))


def server_signature(hash_name: str, salted: bytes, auth_message: bytes) -> bytes:
    """ServerSignature: how the broker proves that it has the user's server key."""
    return hmac.digest(server_key(hash_name, salted), auth_message, hash_name)


def sasl_name(username: str) -> str:
    """A user name with commas and equal signs escaped."""
    return username.replace("=", "=3D").replace(",", "=2C")


def new_nonce() -> str:
    """A random nonce: printable, without commas."""
    return secrets.token_urlsafe(24)


def scram_client(
    mechanism: ScramMechanism,
    username: str,
    password: str,
    nonce: str | None = None,
    *,
    is_token: bool = False,
) -> Exchange:
    """The client's side; SaslError if the broker does not prove that it knows the user.

    With `is_token`, name and password are the id and the HMAC of a delegation token.
    """
    nonce = nonce or new_nonce()
    extension = ",tokenauth=true" if is_token else ""
    first_bare = f"n={sasl_name(username)},r={nonce}{extension}"
    server_first = (yield f"{_NO_CHANNEL_BINDING}{first_bare}".encode()).decode()
    server = parse_server_first(server_first, nonce)
    binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
    final_bare = f"c={binding},r={server.nonce}"
    auth_message = f"{first_bare},{server_first},{final_bare}".encode()
    salted = salted_password(mechanism.hash_name, password, server.salt, server.iterations)
    proof = client_proof(mechanism.hash_name, salted, auth_message)
    server_final = yield f"{final_bare},p={base64.b64encode(proof).decode()}".encode()
    expected = server_signature(mechanism.hash_name, salted, auth_message)
    if not hmac.compare_digest(parse_server_final(server_final.decode()), expected):
        raise SaslError("the broker did not prove that it knows this user")


def parse_server_first(text: str, nonce: str) -> ServerFirst:
    """Parse the broker's first message; SaslError if it does not continue `nonce`."""
    found = _SERVER_FIRST.fullmatch(text)
    if not found:
        raise SaslError("the broker's first SCRAM message is malformed")
    if not found["nonce"].startswith(nonce) or found["nonce"] == nonce:
        raise SaslError("the broker's nonce does not begin with the client's")
    parsed = ServerFirst(found["nonce"], _unbase64(found["salt"]), int(found["i"]))
    if parsed.iterations < MIN_ITERATIONS:
        raise SaslError(
            f"{parsed.iterations} iterations are too few: at least {MIN_ITERATIONS} are required"
        )
    return parsed


def parse_server_final(text: str) -> bytes:
    """The broker's signature; SaslError if it sent an error instead."""
    found = _SERVER_FINAL.fullmatch(text)
    if not found:
        raise SaslError("the broker's last SCRAM message is malformed")
    if found["error"] is not None:
        raise SaslError(f"the broker reports {found['error']}")
    return _unbase64(found["signature"])


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SaslError("a field of a SCRAM message is not base64") from error
