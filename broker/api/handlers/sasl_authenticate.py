"""Handle SaslAuthenticate: one token of a SASL conversation (KIP-152).

Versions:
    v1 session lifetime (KIP-368)
    v2 flexible

Deliberately missing: SASL listeners, as for SaslHandshake.
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
