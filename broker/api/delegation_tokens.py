"""Delegation tokens (KIP-48), as the four APIs that manage them share them."""

from typing import Final

from broker.api.authorization import is_authorized
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.metadata.delegation_token_manager import DelegationTokenManager
from broker.security.acls import AclOperation, ResourceType
from broker.security.delegation_tokens import TokenInformation
from broker.security.principal import ANONYMOUS, KafkaPrincipal

NO_TIMESTAMP: Final = -1


def check_allowed(context: RequestContext) -> None:
    """DELEGATION_TOKEN_REQUEST_NOT_ALLOWED unless the client has authenticated itself.

    A client that logged in with a token must not get another one.
    """
    peer = context.peer
    is_anonymous = peer.security_protocol == "SSL" and peer.principal == ANONYMOUS
    is_unknown = peer.security_protocol == "PLAINTEXT" or is_anonymous
    if is_unknown or peer.principal.is_token_authenticated:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def tokens_of(context: RequestContext) -> DelegationTokenManager:
    """The manager of tokens; DELEGATION_TOKEN_AUTH_DISABLED without a secret key."""
    if context.services.tokens is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return context.services.tokens


def may_create_for(context: RequestContext, owner: KafkaPrincipal) -> bool:
    """Whether the client may have a token for another owner: CreateTokens on that user."""
    return is_authorized(context, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner))


def may_describe(context: RequestContext, token: TokenInformation) -> bool:
    """Whether the client may see another principal's token.

    It needs Describe on the token, or DescribeTokens on its owner.
    """
    return is_authorized(
        context, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
    ) or is_authorized(context, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
