"""Handle ExpireDelegationToken (KIP-48).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible

Deliberately missing: nothing.
"""

from broker.api.context import RequestContext
from broker.api.delegation_tokens import NO_TIMESTAMP, check_allowed, tokens_of
from broker.errors import ErrorCode
from broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def handle(
    request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse:
    """Let a token expire, at once or later; only its owner, requester and renewers may."""
    check_allowed(context)
    expiry_ms = await tokens_of(context).expire(
        context.peer.principal, request.hmac, request.expiry_time_period_ms
    )
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)


def error_response(
    request: ExpireDelegationTokenRequest, code: ErrorCode
) -> ExpireDelegationTokenResponse:
    """The error, without a time of expiry."""
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIMESTAMP)
