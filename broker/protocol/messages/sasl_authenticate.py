"""A step of SASL authentication (KIP-152).

Versions:
    v1 session lifetime (KIP-368)
    v2 flexible
"""

from broker.protocol.schema import Request, Response, wire


class SaslAuthenticateRequest(
    Request["SaslAuthenticateResponse"], api_key=36, versions=(0, 2), flexible=2
):
    """The client's token."""

    auth_bytes: bytes = wire("bytes")


class SaslAuthenticateResponse(Response, versions=(0, 2), flexible=2):
    """The broker's token."""

    error_code: int = wire("int16")
    error_message: str | None = wire("string", nullable=0)
    auth_bytes: bytes = wire("bytes")
    session_lifetime_ms: int = wire("int64", since=1, ignorable=True)
