"""Handle RenewDelegationToken (KIP-48).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible

Deliberately missing: tokens, as for CreateDelegationToken.
"""

from broker.api.context import RequestContext
from broker.api.delegation_tokens import NO_TIMESTAMP
from broker.errors import ErrorCode
from broker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def handle(
    request: RenewDelegationTokenRequest, context: RequestContext
) -> RenewDelegationTokenResponse:
    """Refuse: no anonymous client renews tokens."""
    return error_response(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def error_response(
    request: RenewDelegationTokenRequest, code: ErrorCode
) -> RenewDelegationTokenResponse:
    """The error, without a time of expiry."""
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIMESTAMP)
