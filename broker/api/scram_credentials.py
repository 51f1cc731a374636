"""SCRAM credentials of users, as the APIs that describe and alter them share them (KIP-554).

Stored beside a user's quotas, one key per mechanism, in Kafka's format:

    SCRAM-SHA-256 = salt=BASE64,stored_key=BASE64,server_key=BASE64,iterations=N
"""

import re
from base64 import b64encode
from typing import Final

from broker.metadata.znodes.configs import sanitize
from broker.security.scram import (
    ScramCredential,
    ScramMechanism,
    client_key,
    server_key,
    stored_key,
)

MECHANISMS: Final = {1: ScramMechanism.SHA_256, 2: ScramMechanism.SHA_512}
"""By their numbers in the protocol."""

_CREDENTIAL: Final = re.compile(r"salt=[^,]+,stored_key=[^,]+,server_key=[^,]+,iterations=(\d+)")


def node_of(user: str) -> str:
    """The path of a user's config below /config."""
    return f"users/{sanitize(user)}"


def credential_text(
    mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
) -> str:
    """The credential as it is stored; the password cannot be computed from it."""
    name = mechanism.hash_name
    stored = stored_key(name, client_key(name, salted_password))
    server = server_key(name, salted_password)
    return text_of(ScramCredential(salt, stored, server, iterations))


def text_of(credential: ScramCredential) -> str:
    """A credential as it is stored; see `security.scram.parse_credential` for the inverse."""
    texts = (b64encode(data).decode() for data in credential[:3])
    return "salt={},stored_key={},server_key={},iterations={}".format(*texts, credential.iterations)


def iterations_of(credential: str) -> int:
    """The iterations of a stored credential; ValueError if it is not one."""
    found = _CREDENTIAL.fullmatch(credential)
    if found is None:
        raise ValueError("malformed SCRAM credential")
    return int(found[1])
