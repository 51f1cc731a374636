"""Handle RenewDelegationToken (KIP-48).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible

Deliberately missing: nothing.
"""

from broker.api.context import RequestContext
from broker.api.delegation_tokens import NO_TIMESTAMP, check_allowed, tokens_of
from broker.errors import ErrorCode
from broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def handle(
    request: RenewDelegationTokenRequest, context: RequestContext
) -> RenewDelegationTokenResponse:
    """Prolong a token; only its owner, requester and renewers may."""
    check_allowed(context)
    expiry_ms = await tokens_of(context).renew(
        context.peer.principal, request.hmac, request.renew_period_ms
    )
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)


def error_response(
    request: RenewDelegationTokenRequest, code: ErrorCode
) -> RenewDelegationTokenResponse:
    """The error, without a time of expiry."""
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIMESTAMP)
