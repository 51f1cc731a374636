"""PLAIN (RFC 4616): name and password as they are; only as secret as the connection."""

from broker.security.sasl import Conversation

MECHANISM = "PLAIN"


def plain_client(username: str, password: str) -> Conversation:
    """The client's side: everything is said in the first token, and any answer will do."""
    yield plain_token(username, password)


def plain_token(username: str, password: str, authorization_id: str = "") -> bytes:
    """Who to act as, who one is, and the password, with NUL between them."""
    return "\0".join((authorization_id, username, password)).encode()
