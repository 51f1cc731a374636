"""Handle SaslAuthenticate after authentication (KIP-152).

Tokens of a SASL exchange are processed by `broker.security.sasl_server_authenticator` and never get
here. A request that does was sent to a listener without SASL, or too late.

Versions:
    v1 session lifetime (KIP-368)
    v2 flexible

Deliberately missing: nothing.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


def handle(request: SaslAuthenticateRequest, context: RequestContext) -> SaslAuthenticateResponse:
    """Refuse: the connection is past authentication."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def error_response(request: SaslAuthenticateRequest, code: ErrorCode) -> SaslAuthenticateResponse:
    """The error, without a token."""
    return SaslAuthenticateResponse(error_code=code, error_message=None)
