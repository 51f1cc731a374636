"""Handle DescribeDelegationToken (KIP-48).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible
    v3 the requester of a token (KIP-373)

Deliberately missing: tokens, as for CreateDelegationToken.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    """Refuse: no anonymous client sees tokens."""
    return error_response(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def error_response(
    request: DescribeDelegationTokenRequest, code: ErrorCode
) -> DescribeDelegationTokenResponse:
    """The error, without tokens."""
    return DescribeDelegationTokenResponse(error_code=code)
