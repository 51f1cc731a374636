"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as Kafka implements them.

    client-first   n,,n=USER,r=CNONCE
    server-first   r=CNONCE+SNONCE,s=SALT,i=ITERATIONS
    client-final   c=biws,r=CNONCE+SNONCE,p=PROOF
    server-final   v=SIGNATURE, or e=ERROR

Neither side sends the password: the proof shows that the client knows it, and the signature that
the broker has keys derived from it. As in Kafka, names and passwords are UTF-8 without SASLprep.
The functions above `scram_client` compute what both sides need.

A client that logs in with a delegation token adds the extension `tokenauth=true` to its first
message; its user name is the token's id and its password the token's HMAC.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from broker.security.sasl import (
    Exchange,
    Identity,
    SaslAuthenticationFailed,
    SaslError,
    ServerExchange,
)

MIN_ITERATIONS = 4096
"""Kafka's minimum too: fewer make it cheap to guess the password from a recorded exchange."""

_NO_CHANNEL_BINDING = "n,,"
_SERVER_FIRST = re.compile(r"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=(?P<i>\d+)(?:,.*)?")
_CLIENT_FIRST = re.compile(
    r"n,(?:a=(?P<authzid>[^,]*))?,(?P<bare>(?:m=[^,]*,)?n=(?P<user>(?:[^,=]|=2C|=3D)+),"
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>(?:,[A-Za-z]+=[^,]+)*))"
)
_CLIENT_FINAL = re.compile(
    r"(?P<bare>c=(?P<binding>[^,]*),r=(?P<nonce>[^,]+)(?:,[A-Za-z]+=[^,]+)*?),p=(?P<proof>[^,]+)"
)
_CREDENTIAL = re.compile(
    r"salt=(?P<salt>[^,]+),stored_key=(?P<stored>[^,]+),server_key=(?P<server>[^,]+),"
    r"iterations=(?P<iterations>\d+)"
)
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


class ScramCredential(NamedTuple):
    """What a broker knows of a user: enough to verify the password, not enough to know it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential({self.iterations} iterations)"


class ScramLogin(NamedTuple):
    """A credential, and the principal that it belongs to."""

    credential: ScramCredential
    name: str
    expires_at_ms: int | None = None


ScramLookup = Callable[[str, bool], ScramLogin | None]
"""Finds the credential of a user, or (second argument) of a delegation token; None: unknown."""


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


def scram_server(
    mechanism: ScramMechanism, lookup: ScramLookup, nonce: str | None = None
) -> ServerExchange:
    """The broker's side; SaslError if the client does not prove that it knows the password."""
    name = mechanism.hash_name
    first = _parsed(_CLIENT_FIRST, (yield b""), "first")
    username = first["user"].replace("=2C", ",").replace("=3D", "=")
    is_token = "tokenauth=true" in (first["extensions"] or "").lower().split(",")
    login = lookup(username, is_token)
    if login is None:
        raise SaslError("Authentication failed: Invalid user credentials")
    if first["authzid"] not in (None, "", username):
        raise SaslAuthenticationFailed(
            "Authentication failed: Client requested an authorization id that is different from "
            "username"
        )
    credential = login.credential
    if credential.iterations < MIN_ITERATIONS:
        raise SaslError(f"{credential.iterations} iterations are too few")
    both = first["nonce"] + (nonce or new_nonce())
    salt = base64.b64encode(credential.salt).decode()
    server_first = f"r={both},s={salt},i={credential.iterations}"
    final = _parsed(_CLIENT_FINAL, (yield server_first.encode()), "final")
    if final["nonce"] != both:
        raise SaslError("Invalid client nonce in the final client message.")
    message = f"{first['bare']},{server_first},{final['bare']}".encode()
    if not _is_proof(name, credential.stored_key, message, _unbase64(final["proof"])):
        raise SaslError("Invalid client credentials")
    signature = hmac.digest(credential.server_key, message, name)
    last = b"v=" + base64.b64encode(signature)
    return Identity(login.name, last, login.expires_at_ms, is_token)


def _is_proof(hash_name: str, stored: bytes, message: bytes, proof: bytes) -> bool:
    """Whether the proof contains the client key that `stored` was made of."""
    signature = hmac.digest(stored, message, hash_name)
    if len(proof) != len(signature):
        return False
    key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    return hmac.compare_digest(stored_key(hash_name, key), stored)


def _parsed(pattern: "re.Pattern[str]", token: bytes, which: str) -> "re.Match[str]":
    found = pattern.fullmatch(token.decode("utf-8", "replace"))
    if not found:
        raise SaslError(f"the client's {which} SCRAM message is malformed")
    return found


def make_credential(
    mechanism: ScramMechanism, password: str, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """The credential of a password, with a new salt."""
    name, salt = mechanism.hash_name, secrets.token_bytes(24)
    salted = salted_password(name, password, salt, iterations)
    stored = stored_key(name, client_key(name, salted))
    return ScramCredential(salt, stored, server_key(name, salted), iterations)


def parse_credential(text: str) -> ScramCredential:
    """A credential as it is stored in the config of a user; ValueError if it is malformed."""
    found = _CREDENTIAL.fullmatch(text)
    if not found:
        raise ValueError("malformed SCRAM credential")
    salt, stored, server = map(_unbase64, found.group("salt", "stored", "server"))
    return ScramCredential(salt, stored, server, int(found["iterations"]))


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
