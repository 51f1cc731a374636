"""Handle ExpireDelegationToken (KIP-48).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible

Deliberately missing: tokens, as for CreateDelegationToken.
"""

from broker.api.context import RequestContext
from broker.api.delegation_tokens import NO_TIMESTAMP
from broker.errors import ErrorCode
from broker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def handle(
    request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse:
    """Refuse: no anonymous client expires tokens."""
    return error_response(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def error_response(
    request: ExpireDelegationTokenRequest, code: ErrorCode
) -> ExpireDelegationTokenResponse:
    """The error, without a time of expiry."""
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIMESTAMP)
