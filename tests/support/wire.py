"""The test client: requests as frames and responses as messages, on a socket or a dispatcher."""

import socket
from typing import Any, Self, TypedDict

from broker.net.connection import Peer
from broker.protocol.codec import decode_from, encode
from broker.protocol.framing import join
from broker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from broker.protocol.messages import response_class
from broker.protocol.primitives import Part
from broker.protocol.schema import Request, Response, ResponseT

PEER = Peer("127.0.0.1", 50000, "PLAINTEXT")
CORRELATION_ID = 77


class ControllerFields(TypedDict):
    """What every request of the controller to a broker begins with."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


def request_frame(request: Request[Any], version: int, client_id: str | None = "test") -> bytes:
    """A request with its header, without the size."""
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=CORRELATION_ID,
        client_id=client_id,
    )
    head = encode(header, request_header_version(request.api_key, version))
    return head + encode(request, version)


def read_answer(parts: list[Part] | None, request: Request[ResponseT], version: int) -> ResponseT:
    """The response in the parts of a frame, whose size and header must be right."""
    assert parts is not None
    frame = join(parts)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return read_response(frame[4:], request.api_key, version)  # type: ignore[return-value]


def read_response(frame: bytes, api_key: int, version: int) -> Response:
    """The response in a frame without its size."""
    header_version = response_header_version(api_key, version)
    header, body = decode_from(ResponseHeader, frame, 0, header_version)
    assert header.correlation_id == CORRELATION_ID
    response, end = decode_from(response_class(api_key), frame, body, version)
    assert end == len(frame)
    return response


class WireClient:
    """A plain socket to a broker, for requests of any API and version, and for any other bytes."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, frame: bytes) -> None:
        """Send a frame with its size in front."""
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def receive(self) -> bytes | None:
        """The next frame; None if the broker has closed the connection."""
        size = self._exactly(4)
        return None if size is None else self._exactly(int.from_bytes(size, "big"))

    def _exactly(self, count: int) -> bytes | None:
        received = bytearray()
        while len(received) < count:
            try:
                data = self.socket.recv(count - len(received))
            except ConnectionResetError:
                return None
            if not data:
                return None
            received += data
        return bytes(received)

    def ask(self, request: Request[ResponseT], version: int) -> ResponseT:
        """Send a request and read its response."""
        self.send(request_frame(request, version))
        frame = self.receive()
        assert frame is not None, "the broker closed the connection"
        return read_response(frame, request.api_key, version)  # type: ignore[return-value]
