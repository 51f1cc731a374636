"""A request forwarded to the controller for somebody else (KIP-590)."""

from broker.protocol.schema import Request, Response, wire


class EnvelopeRequest(Request["EnvelopeResponse"], api_key=58, versions=(0, 0), flexible=0):
    """The request, and the principal that sent it."""

    request_data: bytes = wire("bytes")
    request_principal: bytes | None = wire("bytes", nullable=0)
    client_host_address: bytes = wire("bytes")


class EnvelopeResponse(Response, versions=(0, 0), flexible=0):
    """The response for the client."""

    response_data: bytes | None = wire("bytes", nullable=0, default=None)
    error_code: int = wire("int16")
