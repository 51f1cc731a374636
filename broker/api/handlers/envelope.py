"""Handle Envelope (KIP-590): a request that a broker forwards to the controller for a client.

Deliberately missing: forwarding. A ZooKeeper cluster of Kafka 3.9 does not forward requests and
closes the connection that an envelope arrives on; so does this broker.
"""

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.net.connection import CloseConnection
from broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse


def handle(request: EnvelopeRequest, context: RequestContext) -> EnvelopeResponse:
    """CloseConnection, always."""
    raise CloseConnection("Envelope request, but forwarding is not enabled")


def error_response(request: EnvelopeRequest, code: ErrorCode) -> EnvelopeResponse:
    """The error, without a response to pass on."""
    return EnvelopeResponse(error_code=code)
