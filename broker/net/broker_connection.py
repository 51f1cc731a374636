"""A connection to one broker: negotiates versions, pipelines requests, matches responses."""

import asyncio
import logging
import ssl
import struct
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from broker import __version__
from broker.errors import ApiError, ErrorCode
from broker.net.authentication import PLAINTEXT, Security, authenticate
from broker.net.failures import (
    ConnectionFailed,
    SecurityFailed,
    SecurityProblem,
    connecting_failed,
    tls_failed,
)
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode_from, encode_into
from broker.protocol.errors import DecodeError
from broker.protocol.framing import SIZE, FrameBuffer, join, set_size
from broker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from broker.protocol.messages import response_class
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.schema import Request, Response, ResponseT

logger = logging.getLogger(__name__)

_ERROR_CODE = struct.Struct(">h")
_MAX_RESPONSE_BYTES = 2**31 - 1
"""Responses may have any size: they are ours, and we requested them."""
_TLS_ALERT = b"\x15\x03"
"""First bytes of a TLS alert, which a TLS listener sends in response to plaintext."""


class UnsupportedVersion(ApiError):
    """Client and broker have no version of an API in common."""

    def __init__(self, api_key: int, ours: tuple[int, int], theirs: tuple[int, int] | None) -> None:
        name = ApiKey(api_key).display_name
        offer = "does not serve it" if theirs is None else f"serves versions {_range(theirs)}"
        message = f"{name} needs versions {_range(ours)}, but the broker {offer}"
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)


def _range(versions: tuple[int, int]) -> str:
    return f"{versions[0]} to {versions[1]}"


class Node(NamedTuple):
    """A broker's address; id -1 while it is only a bootstrap address."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" + (f" (id {self.node_id})" if self.node_id >= 0 else "")


class _Pending(NamedTuple):
    """A request without a response yet."""

    correlation_id: int
    api_key: int
    version: int
    response: asyncio.Future[Response]


class BrokerConnection(asyncio.BufferedProtocol):
    """Opened by `open_connection`. Responses come in the order of the requests, as Kafka promises.

    A request that its caller abandoned (timeout, cancellation) stays in the queue, so that its
    response is not mistaken for that of another request.
    """

    def __init__(self, node: Node, client_id: str) -> None:
        self.node = node
        self.client_id = client_id
        self.versions: Mapping[int, tuple[int, int]] = {}
        """The versions that the broker serves: lowest and highest, by API key."""
        self._frames = FrameBuffer(_MAX_RESPONSE_BYTES)
        self._pending: deque[_Pending] = deque()
        """Invariant: in the order sent; responses belong to the leftmost."""
        self._correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._last_responded: int | None = None
        """The API of the last response: helps to explain why the broker closes the connection."""
        self._window = memoryview(b"")
        """The buffer that was given to asyncio for the next bytes."""
        self._lost: ConnectionFailed | None = None
        """Why the connection is closed; None while it is open."""

    # Called by asyncio

    @property
    def certificate_expiry(self) -> float | None:
        """When the peer's certificate expires, in seconds since 1970; None without TLS."""
        tls = self._transport.get_extra_info("ssl_object") if self._transport is not None else None
        certificate = tls.getpeercert() if tls is not None else None
        not_after = certificate.get("notAfter") if certificate else None
        return None if not_after is None else float(ssl.cert_time_to_seconds(not_after))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio's protocol."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Part of asyncio's protocol."""
        self._window = self._frames.writable()
        return self._window

    def buffer_updated(self, nbytes: int) -> None:
        """Part of asyncio's protocol."""
        if self._last_responded is None and self._window[:2] == _TLS_ALERT:
            self._fail_with(_requires_tls(self.node))
            return
        self._frames.wrote(nbytes)
        try:
            while (frame := self._frames.next_frame()) is not None:
                self._on_response(
                    bytes(frame)
                )  # copied: the records of a Fetch response are views of it
        except DecodeError as error:
            self._fail(f"invalid response: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's protocol."""
        if isinstance(exc, ssl.SSLError):
            self._fail_with(tls_failed(self.node, exc))
        else:
            self._fail(str(exc) if exc else self._why_closed())

    # Called by users

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._lost is None

    async def send(self, request: Request[ResponseT], version: int | None = None) -> ResponseT:
        """Send a request in the highest common version, and return its response."""
        response: Any = await self._send(request, self.version_for(request, version))
        return response  # type: ignore[no-any-return]

    def version_for(self, request: Request[Any], at_most: int | None = None) -> int:
        """The highest common version; UnsupportedVersion if there is no common one."""
        ours, theirs = request.versions, self.versions.get(request.api_key)
        if theirs is not None:
            highest = min(ours[1], theirs[1]) if at_most is None else min(at_most, theirs[1])
            if highest >= max(ours[0], theirs[0]):
                return highest
        raise UnsupportedVersion(request.api_key, ours, theirs)

    async def negotiate(self) -> None:
        """Learn the versions that the broker serves; an older broker needs a second request."""
        request = ApiVersionsRequest(
            client_software_name="kctl", client_software_version=__version__
        )
        response = await self._send(request, request.versions[1])
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            own = {api.api_key: api.max_version for api in response.api_keys}
            version = min(own.get(ApiKey.API_VERSIONS, 0), request.versions[1])
            response = await self._send(request, version)
        if response.error_code:
            raise ConnectionFailed(f"{self.node}: {ErrorCode.name_of(response.error_code)}")
        self.versions = {
            api.api_key: (api.min_version, api.max_version) for api in response.api_keys
        }

    def close(self) -> None:
        """Close; requests in flight fail."""
        self._fail("the connection was closed locally")

    async def _send(self, request: Request[Any], version: int) -> Any:
        if self._lost is not None:
            raise self._lost
        assert self._transport is not None  # noqa: S101
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        pending = _Pending(
            self._correlation_id,
            request.api_key,
            version,
            asyncio.get_running_loop().create_future(),
        )
        frame = _encode(request, version, self._correlation_id, self.client_id)
        self._pending.append(pending)
        self._transport.write(frame)
        return await pending.response

    def _on_response(self, frame: bytes) -> None:
        """Complete the oldest request; DecodeError if this is not its response."""
        if not self._pending:
            raise DecodeError("response without a request")
        pending = self._pending[0]
        header_version = response_header_version(pending.api_key, pending.version)
        header, body = decode_from(ResponseHeader, frame, 0, header_version)
        if header.correlation_id != pending.correlation_id:
            raise DecodeError(
                f"correlation id {header.correlation_id}, expected {pending.correlation_id}"
            )
        message = _decode_response(pending, frame, body)
        self._pending.popleft()
        self._last_responded = pending.api_key
        if not pending.response.done():
            pending.response.set_result(message)

    def _why_closed(self) -> str:
        """The likely reason why the broker closed the connection, by its last response."""
        closed = "the broker closed the connection"
        if self._last_responded is None:
            return f"{closed} before any response: does the listener require TLS?"
        if self._last_responded == ApiKey.API_VERSIONS and self._pending:
            return f"{closed} at the first request: does the listener require SASL?"
        return closed

    def _fail(self, reason: str) -> None:
        self._fail_with(ConnectionFailed(f"{self.node}: {reason}"))

    def _fail_with(self, failure: ConnectionFailed) -> None:
        if self._lost is None:
            self._lost = failure
        if self._transport is not None:
            self._transport.abort()
        while self._pending:
            response = self._pending.popleft().response
            if not response.done():
                response.set_exception(self._lost)


def _requires_tls(node: Node) -> SecurityFailed:
    return SecurityFailed(f"{node} is a TLS listener", SecurityProblem.WANTS_TLS)


def _decode_response(pending: _Pending, frame: bytes, body: int) -> Response:
    version = pending.version
    if pending.api_key == ApiKey.API_VERSIONS and version > 0:
        # A broker that does not know the version responds in version 0. The error code is at the
        # same position in all versions.
        (code,) = _ERROR_CODE.unpack_from(frame, body) if len(frame) >= body + 2 else (0,)
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return decode_from(ApiVersionsResponse, frame, body, 0)[0]
    return decode_from(response_class(pending.api_key), frame, body, version)[0]


def _encode(request: Request[Any], version: int, correlation_id: int, client_id: str) -> bytes:
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    head = bytearray(SIZE.size)
    encode_into(header, request_header_version(request.api_key, version), head)
    return join(set_size(encode_into(request, version, head)))


async def open_connection(
    node: Node, client_id: str, timeout_s: float, security: Security = PLAINTEXT
) -> BrokerConnection:
    """Connect, negotiate versions and authenticate; ConnectionFailed names broker and reason."""
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: BrokerConnection(node, client_id), node.host, node.port, ssl=security.tls
            )
            try:
                await connection.negotiate()
                if security.sasl is not None:
                    await authenticate(connection, security.sasl)
            except BaseException:
                connection.close()
                raise
            return connection
    except TimeoutError:
        raise ConnectionFailed(f"{node}: no response within {timeout_s:g} s") from None
    except ConnectionFailed:
        raise
    except UnicodeError as error:  # an advertised host name that cannot be looked up
        raise ConnectionFailed(f"{node}: invalid host name") from error
    except OSError as error:
        raise connecting_failed(node, error, security.tls is not None) from error
