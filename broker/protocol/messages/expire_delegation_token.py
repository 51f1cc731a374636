"""Expire a delegation token (KIP-48).

Versions:
    v2 flexible
"""

from broker.protocol.schema import Request, Response, wire


class ExpireDelegationTokenRequest(
    Request["ExpireDelegationTokenResponse"], api_key=40, versions=(0, 2), flexible=2
):
    """The token, by its HMAC."""

    hmac: bytes = wire("bytes")
    expiry_time_period_ms: int = wire("int64")


class ExpireDelegationTokenResponse(Response, versions=(0, 2), flexible=2):
    """The new time of expiry."""

    error_code: int = wire("int16")
    expiry_timestamp_ms: int = wire("int64")
    throttle_time_ms: int = wire("int32")
