"""Handle SaslHandshake after authentication.

Handshakes on SASL listeners are processed by `broker.security.sasl_server_authenticator` and never
get here. On other listeners every connection counts as authenticated, and a handshake after
authentication is ILLEGAL_SASL_STATE.

Versions:
    v0 the tokens follow as bare bytes
    v1 the tokens are sent in SaslAuthenticate (KIP-152)

Deliberately missing: nothing.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    """Refuse: the connection is past authentication."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def error_response(request: SaslHandshakeRequest, code: ErrorCode) -> SaslHandshakeResponse:
    """The error, without mechanisms."""
    return SaslHandshakeResponse(error_code=code)
