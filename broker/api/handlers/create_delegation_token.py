"""Handle CreateDelegationToken (KIP-48).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible
    v3 tokens for another owner (KIP-373)

Deliberately missing: tokens. They need an authenticated principal, and every connection is
anonymous: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as in Kafka on PLAINTEXT.
"""

from typing import Final

from broker.api.context import RequestContext
from broker.api.delegation_tokens import ANONYMOUS, NO_TIMESTAMP, Principal
from broker.errors import ErrorCode
from broker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

_FIRST_VERSION_WITH_REQUESTER: Final = 3
_NO_PRINCIPAL: Final = Principal("", "")


def handle(
    request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse:
    """Refuse, and repeat who would own the token."""
    code, owner = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ANONYMOUS
    if request.owner_principal_name:
        if request.owner_principal_type is None:  # Kafka fails on it
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        else:
            owner = Principal(request.owner_principal_type, request.owner_principal_name)
    names_requester = context.api_version >= _FIRST_VERSION_WITH_REQUESTER
    return _refused(code, owner, ANONYMOUS if names_requester else _NO_PRINCIPAL)


def _refused(
    code: ErrorCode, owner: Principal, requester: Principal
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIMESTAMP,
        expiry_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=NO_TIMESTAMP,
    )


def error_response(
    request: CreateDelegationTokenRequest, code: ErrorCode
) -> CreateDelegationTokenResponse:
    """The error, without a token."""
    return _refused(code, ANONYMOUS, _NO_PRINCIPAL)
