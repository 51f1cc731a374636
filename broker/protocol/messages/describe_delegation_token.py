"""List delegation tokens (KIP-48).

Versions:
    v2 flexible
    v3 the requester (KIP-373)
"""

from broker.protocol.schema import Request, Response, Struct, wire


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = wire("string")
    principal_name: str = wire("string")


class DescribeDelegationTokenRequest(
    Request["DescribeDelegationTokenResponse"], api_key=41, versions=(0, 3), flexible=2
):
    """The owners of the tokens; null for all."""

    owners: list[DescribeDelegationTokenOwner] | None = wire(
        [DescribeDelegationTokenOwner], nullable=0
    )


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = wire("string")
    principal_name: str = wire("string")


class DescribedDelegationToken(Struct):
    principal_type: str = wire("string")
    principal_name: str = wire("string")
    token_requester_principal_type: str = wire("string", since=3)
    token_requester_principal_name: str = wire("string", since=3)
    issue_timestamp: int = wire("int64")
    expiry_timestamp: int = wire("int64")
    max_timestamp: int = wire("int64")
    token_id: str = wire("string")
    hmac: bytes = wire("bytes")
    renewers: list[DescribedDelegationTokenRenewer] = wire([DescribedDelegationTokenRenewer])


class DescribeDelegationTokenResponse(Response, versions=(0, 3), flexible=2):
    """The tokens."""

    error_code: int = wire("int16")
    tokens: list[DescribedDelegationToken] = wire([DescribedDelegationToken])
    throttle_time_ms: int = wire("int32")
