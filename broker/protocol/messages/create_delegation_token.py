"""Create a delegation token (KIP-48).

Versions:
    v2 flexible
    v3 tokens for another owner (KIP-373)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class CreatableRenewers(Struct):
    principal_type: str = wire("string")
    principal_name: str = wire("string")


class CreateDelegationTokenRequest(
    Request["CreateDelegationTokenResponse"], api_key=38, versions=(0, 3), flexible=2
):
    """The owner, and the principals that may renew the token."""

    owner_principal_type: str | None = wire("string", since=3, nullable=3)
    owner_principal_name: str | None = wire("string", since=3, nullable=3)
    renewers: list[CreatableRenewers] = wire([CreatableRenewers])
    max_lifetime_ms: int = wire("int64")


class CreateDelegationTokenResponse(Response, versions=(0, 3), flexible=2):
    """The token."""

    error_code: int = wire("int16")
    principal_type: str = wire("string")
    principal_name: str = wire("string")
    token_requester_principal_type: str = wire("string", since=3)
    token_requester_principal_name: str = wire("string", since=3)
    issue_timestamp_ms: int = wire("int64")
    expiry_timestamp_ms: int = wire("int64")
    max_timestamp_ms: int = wire("int64")
    token_id: str = wire("string")
    hmac: bytes = wire("bytes")
    throttle_time_ms: int = wire("int32")
