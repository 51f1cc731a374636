"""Headers of requests and responses, and which version of the header each message has."""

import struct
from functools import lru_cache
from typing import Final

from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import Slices, decode_from, decode_in_slices
from broker.protocol.errors import DecodeError
from broker.protocol.messages import request_class
from broker.protocol.primitives import Buffer
from broker.protocol.schema import Message, wire

_API_AND_VERSION: Final = struct.Struct(">hh")
_UP_TO_CLIENT_ID: Final = struct.Struct(">hhih")
_UP_TO_CLIENT_ID_BYTES: Final = _UP_TO_CLIENT_ID.size
_NO_TAGS: Final = 0
_USUAL_APIS: Final = frozenset(api for api in ApiKey if api != ApiKey.CONTROLLED_SHUTDOWN)
"""APIs whose requests all have a client id."""
_RESPONSE_STARTS: Final = (struct.Struct(">4xi"), struct.Struct(">4xix"))
"""Room for the size, then the response header, by header version; version 1 has no tags."""


class RequestHeader(Message, versions=(0, 2), flexible=2):
    """API, version, correlation id and client id of a request."""

    request_api_key: int = wire("int16")
    request_api_version: int = wire("int16")
    correlation_id: int = wire("int32")
    client_id: str | None = wire("string", since=1, nullable=1, ignorable=True, flexible=False)


class ResponseHeader(Message, versions=(0, 1), flexible=1):
    """The correlation id of the request."""

    correlation_id: int = wire("int32")


@lru_cache(maxsize=1024)
def request_header_version(api_key: int, api_version: int) -> int:
    """2 if the request is flexible, otherwise 1; 0 for ControlledShutdown v0, which is older."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    return 2 if api_version >= request_class(api_key).flexible else 1


@lru_cache(maxsize=1024)
def response_header_version(api_key: int, api_version: int) -> int:
    """1 if the response is flexible, otherwise 0; 0 for ApiVersions, for all clients."""
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if api_version >= request_class(api_key).flexible else 0


def start_response(api_key: int, api_version: int, correlation_id: int) -> bytearray:
    """The frame of a response up to its body, with the size still 0.

    The same bytes as encoding a ResponseHeader, in a fifth of the time.
    """
    start = _RESPONSE_STARTS[response_header_version(api_key, api_version)]
    return bytearray(start.pack(correlation_id))


def read_request_header(frame: memoryview) -> tuple[int, int, int, str | None, int]:
    """API key, version, correlation id, client id, and the position of the body.

    The same as `decode_request_header`, in two thirds of the time: every request has a header.
    """
    if len(frame) > _UP_TO_CLIENT_ID_BYTES:
        api_key, version, correlation_id, length = _UP_TO_CLIENT_ID.unpack_from(frame)
        end = _UP_TO_CLIENT_ID_BYTES + length
        if length >= 0 and end < len(frame) and api_key in _USUAL_APIS:
            client_id = str(frame[_UP_TO_CLIENT_ID_BYTES:end], "utf-8", "replace")
            if request_header_version(api_key, version) == 1:
                return api_key, version, correlation_id, client_id, end
            if frame[end] == _NO_TAGS:
                return api_key, version, correlation_id, client_id, end + 1
    return _as_tuple(*decode_request_header(frame))


def read_header_in_slices(
    frame: memoryview,
) -> Slices[tuple[int, int, int, str | None, int]]:
    """The same, in slices if the header has tagged fields: it may have millions of them."""
    if len(frame) > _UP_TO_CLIENT_ID_BYTES:
        api_key, version, _, length = _UP_TO_CLIENT_ID.unpack_from(frame)
        end = _UP_TO_CLIENT_ID_BYTES + max(length, 0)
        is_usual = end < len(frame) and api_key in _USUAL_APIS
        if is_usual and (request_header_version(api_key, version) == 1 or frame[end] == _NO_TAGS):
            return read_request_header(frame)
    header, body = yield from decode_in_slices(RequestHeader, frame, 0, _header_version(frame))
    return _as_tuple(header, body)


def _as_tuple(header: RequestHeader, body: int) -> tuple[int, int, int, str | None, int]:
    return (
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
        body,
    )


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header of a request and the position of its body; DecodeError for an unknown API too.

    Unknown *versions* are accepted: their header can be read, and ApiVersions responds to them.
    """
    return decode_from(RequestHeader, frame, 0, _header_version(frame))


def _header_version(frame: Buffer) -> int:
    if len(frame) < _API_AND_VERSION.size:
        raise DecodeError(f"a request of {len(frame)} bytes is too short for a header")
    api_key, api_version = _API_AND_VERSION.unpack_from(frame)
    try:
        return request_header_version(api_key, api_version)
    except ValueError:
        raise DecodeError(f"unknown API key {api_key}") from None
