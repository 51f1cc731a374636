"""Handle CreateDelegationToken (KIP-48).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible
    v3 tokens for another owner (KIP-373)

Deliberately missing: nothing.
"""

from typing import Final

from broker.api.context import RequestContext
from broker.api.delegation_tokens import NO_TIMESTAMP, check_allowed, may_create_for, tokens_of
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from broker.security.principal import ANONYMOUS, KafkaPrincipal

_FIRST_VERSION_WITH_REQUESTER: Final = 3
_NO_PRINCIPAL: Final = KafkaPrincipal("", "")
_USER: Final = "User"


async def handle(
    request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse:
    """Create a token; an error response names the intended owner too."""
    requester = owner = KafkaPrincipal(*context.peer.principal[:2])
    names_requester = context.api_version >= _FIRST_VERSION_WITH_REQUESTER
    shown = requester if names_requester else _NO_PRINCIPAL
    try:
        if request.owner_principal_name:
            if request.owner_principal_type is None:  # Kafka fails on it
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            owner = KafkaPrincipal(request.owner_principal_type, request.owner_principal_name)
        check_allowed(context)
        if owner != requester and not may_create_for(context, owner):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        renewers = tuple(
            KafkaPrincipal(r.principal_type, r.principal_name) for r in request.renewers
        )
        if any(renewer.principal_type != _USER for renewer in renewers):
            raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        manager = tokens_of(context)
        token = await manager.create(owner, requester, renewers, request.max_lifetime_ms)
    except ApiError as error:
        return _refused(error.code, owner, shown)
    return CreateDelegationTokenResponse(
        principal_type=owner.principal_type,
        principal_name=owner.name,
        token_requester_principal_type=shown.principal_type,
        token_requester_principal_name=shown.name,
        issue_timestamp_ms=token.issue_timestamp_ms,
        expiry_timestamp_ms=token.expiry_timestamp_ms,
        max_timestamp_ms=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=manager.cache.hmac_of(token.token_id),
    )


def _refused(
    code: ErrorCode, owner: KafkaPrincipal, requester: KafkaPrincipal
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.principal_type,
        principal_name=owner.name,
        token_requester_principal_type=requester.principal_type,
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
