"""Delegation tokens: create, renew, expire and list them."""

from collections.abc import Sequence

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from broker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kctl.model.tokens import DelegationToken


async def list_tokens(client: Client, owners: Sequence[str] | None = None) -> list[DelegationToken]:
    """The tokens that this user may see, of these owners or of all (None)."""
    wanted = None
    if owners is not None:
        wanted = [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(_parts, owners)
        ]
    response = await client.send(DescribeDelegationTokenRequest(owners=wanted))
    _check(response.error_code)
    return [
        DelegationToken(
            one.token_id,
            one.hmac,
            f"{one.principal_type}:{one.principal_name}",
            _requester(one.token_requester_principal_type, one.token_requester_principal_name),
            tuple(f"{who.principal_type}:{who.principal_name}" for who in one.renewers),
            one.issue_timestamp,
            one.expiry_timestamp,
            one.max_timestamp,
        )
        for one in response.tokens
    ]


async def create_token(
    client: Client, owner: str | None, renewers: Sequence[str], max_lifetime_ms: int
) -> DelegationToken:
    """Create a token for this user, or for another owner; -1: the brokers' longest lifetime."""
    kind, name = _parts(owner) if owner else (None, None)
    response = await client.send(
        CreateDelegationTokenRequest(
            owner_principal_type=kind,
            owner_principal_name=name,
            renewers=[
                CreatableRenewers(principal_type=one, principal_name=who)
                for one, who in map(_parts, renewers)
            ],
            max_lifetime_ms=max_lifetime_ms,
        )
    )
    _check(response.error_code)
    return DelegationToken(
        response.token_id,
        response.hmac,
        f"{response.principal_type}:{response.principal_name}",
        _requester(
            response.token_requester_principal_type, response.token_requester_principal_name
        ),
        tuple(renewers),
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
    )


async def renew_token(client: Client, hmac: bytes, period_ms: int) -> int:
    """The new time of expiry; -1: the brokers' default period."""
    response = await client.send(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms))
    _check(response.error_code)
    return response.expiry_timestamp_ms


async def expire_token(client: Client, hmac: bytes, period_ms: int) -> int:
    """The new time of expiry; a negative period: now."""
    response = await client.send(
        ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    )
    _check(response.error_code)
    return response.expiry_timestamp_ms


def _check(code: int) -> None:
    if code:
        raise ApiError(ErrorCode(code), _MEANINGS.get(ErrorCode(code), "delegation token"))


_MEANINGS = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "delegation tokens are disabled",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "no such token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "only its owner and its renewers may do this",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "tokens need an authenticated connection, and not by a token"
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "not allowed for another owner",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the token has expired",
}


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _requester(kind: str, name: str) -> str:
    """Empty before Kafka 3.3, which did not know requesters."""
    return f"{kind}:{name}" if name else ""
