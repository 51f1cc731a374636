"""Handle DescribeDelegationToken (KIP-48).

Versions:
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 flexible
    v3 the requester of a token (KIP-373)

Deliberately missing: nothing.
"""

from typing import Final

from broker.api.context import RequestContext
from broker.api.delegation_tokens import check_allowed, may_describe, tokens_of
from broker.errors import ErrorCode
from broker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from broker.security.delegation_tokens import TokenInformation

_FIRST_VERSION_WITH_REQUESTER: Final = 3


def handle(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    """The tokens of the requested owners that the client may see."""
    check_allowed(context)
    cache = tokens_of(context).cache
    owners = request.owners
    wanted = None if owners is None else {(o.principal_type, o.principal_name) for o in owners}
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token, cache.hmac_of(token.token_id), context.api_version)
            for token in cache.all()
            if (wanted is None or token.owner[:2] in wanted) and _is_visible(token, context)
        ]
    )


def _is_visible(token: TokenInformation, context: RequestContext) -> bool:
    return token.is_owner_or_renewer(context.peer.principal) or may_describe(context, token)


def _described(token: TokenInformation, hmac: bytes, version: int) -> DescribedDelegationToken:
    names_requester = version >= _FIRST_VERSION_WITH_REQUESTER
    return DescribedDelegationToken(
        principal_type=token.owner.principal_type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.principal_type if names_requester else "",
        token_requester_principal_name=token.requester.name if names_requester else "",
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiry_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=[
            DescribedDelegationTokenRenewer(
                principal_type=renewer.principal_type, principal_name=renewer.name
            )
            for renewer in token.renewers
        ],
    )


def error_response(
    request: DescribeDelegationTokenRequest, code: ErrorCode
) -> DescribeDelegationTokenResponse:
    """The error, without tokens."""
    return DescribeDelegationTokenResponse(error_code=code)
