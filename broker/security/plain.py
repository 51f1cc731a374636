"""PLAIN (RFC 4616): user name and password unencrypted; only safe inside of TLS."""

from broker.security.sasl import Exchange

MECHANISM = "PLAIN"


def plain_client(username: str, password: str) -> Exchange:
    """The client's side: one token; any successful response completes it."""
    yield plain_token(username, password)


def plain_token(username: str, password: str, authorization_id: str = "") -> bytes:
    """Authorization id, user name and password, separated by NUL."""
    return "\0".join((authorization_id, username, password)).encode()
