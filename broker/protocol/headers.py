"""What stands before every request and every response."""

from broker.protocol.schema import Message, wire


class RequestHeader(Message, versions=(0, 2), flexible=2):
    """Which API, which version, and what to put on the answer."""

    request_api_key: int = wire("int16")
    request_api_version: int = wire("int16")
    correlation_id: int = wire("int32")
    client_id: str | None = wire("string", since=1, nullable=1, ignorable=True, flexible=False)


class ResponseHeader(Message, versions=(0, 1), flexible=1):
    """Which request this answers."""

    correlation_id: int = wire("int32")
