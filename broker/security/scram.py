"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as Kafka speaks them.

    client-first   n,,n=USER,r=CNONCE
    server-first   r=CNONCE+SNONCE,s=SALT,i=ITERATIONS
    client-final   c=biws,r=CNONCE+SNONCE,p=PROOF
    server-final   v=SIGNATURE, or e=ERROR

Neither side sends the password: the proof shows that the client has it, and the signature that the
broker has what was derived from it. Like Kafka's, our texts are UTF-8 and not prepared (SASLprep).
The functions above `scram_client` are both sides' mathematics.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from broker.security.sasl import Conversation, SaslError

MIN_ITERATIONS = 4096
"""Fewer make a stolen proof cheap to guess from; Kafka refuses them on both sides."""

_NO_CHANNEL_BINDING = "n,,"
_SERVER_FIRST = re.compile(r"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=(?P<i>\d+)(?:,.*)?")
_SERVER_FINAL = re.compile(r"(?:e=(?P<error>[^,]*)|v=(?P<signature>[^,]+))(?:,.*)?")


class ScramMechanism(StrEnum):
    """The mechanisms Kafka has."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """What hashlib calls its hash."""
        return {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[self.value]


@dataclass(frozen=True)
class ServerFirst:
    """The broker's first word: the common nonce, and how to derive keys from the password."""

    nonce: str
    salt: bytes
    iterations: int


def salted_password(hash_name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The password made expensive to guess: Hi() of the RFC."""
    return hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)


def client_key(hash_name: str, salted: bytes) -> bytes:
    """What the client proves to have."""
    return hmac.digest(salted, b"Client Key", hash_name)


def stored_key(hash_name: str, key: bytes) -> bytes:
    """What a broker keeps: enough to check a proof, not to make one."""
    return hashlib.new(hash_name, key).digest()


def server_key(hash_name: str, salted: bytes) -> bytes:
    """What the broker proves to have."""
    return hmac.digest(salted, b"Server Key", hash_name)


def client_proof(hash_name: str, salted: bytes, auth_message: bytes) -> bytes:
    """The client's key, hidden by a signature that only its stored form can make."""
    key = client_key(hash_name, salted)
    signature = hmac.digest(stored_key(hash_name, key), auth_message, hash_name)
    return bytes(one ^ other for one, other in zip(key, signature, strict=True))


def server_signature(hash_name: str, salted: bytes, auth_message: bytes) -> bytes:
    """What the broker sends to show that it knows the user."""
    return hmac.digest(server_key(hash_name, salted), auth_message, hash_name)


def sasl_name(username: str) -> str:
    """A name that may stand between commas."""
    return username.replace("=", "=3D").replace(",", "=2C")


def new_nonce() -> str:
    """Printable, without commas, never the same again."""
    return secrets.token_urlsafe(24)


def scram_client(
    mechanism: ScramMechanism, username: str, password: str, nonce: str | None = None
) -> Conversation:
    """The client's side; SaslError if the broker cannot show that it knows the password too."""
    nonce = nonce or new_nonce()
    first_bare = f"n={sasl_name(username)},r={nonce}"
    server_first = (yield f"{_NO_CHANNEL_BINDING}{first_bare}".encode()).decode()
    told = parse_server_first(server_first, nonce)
    binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
    final_bare = f"c={binding},r={told.nonce}"
    auth_message = f"{first_bare},{server_first},{final_bare}".encode()
    salted = salted_password(mechanism.hash_name, password, told.salt, told.iterations)
    proof = client_proof(mechanism.hash_name, salted, auth_message)
    server_final = yield f"{final_bare},p={base64.b64encode(proof).decode()}".encode()
    expected = server_signature(mechanism.hash_name, salted, auth_message)
    if not hmac.compare_digest(parse_server_final(server_final.decode()), expected):
        raise SaslError("the broker could not show that it knows this user")


def parse_server_first(text: str, nonce: str) -> ServerFirst:
    """Read the broker's first word; SaslError if it is not an answer to `nonce`."""
    found = _SERVER_FIRST.fullmatch(text)
    if not found:
        raise SaslError("the broker's first SCRAM message cannot be read")
    if not found["nonce"].startswith(nonce) or found["nonce"] == nonce:
        raise SaslError("the broker answered with somebody else's nonce")
    told = ServerFirst(found["nonce"], _unbase64(found["salt"]), int(found["i"]))
    if told.iterations < MIN_ITERATIONS:
        raise SaslError(f"{told.iterations} iterations are too few: wanted are {MIN_ITERATIONS}")
    return told


def parse_server_final(text: str) -> bytes:
    """The broker's signature; SaslError if it sent its refusal instead."""
    found = _SERVER_FINAL.fullmatch(text)
    if not found:
        raise SaslError("the broker's last SCRAM message cannot be read")
    if found["error"] is not None:
        raise SaslError(f"the broker says {found['error']}")
    return _unbase64(found["signature"])


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SaslError("a SCRAM message is not base64 where it should be") from error
