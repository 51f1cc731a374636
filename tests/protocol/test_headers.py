"""Headers of requests and responses, and their versions."""

import re
import tracemalloc

import pytest

from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import encode
from broker.protocol.errors import DecodeError
from broker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    decode_request_header,
    read_request_header,
    request_header_version,
    response_header_version,
    start_response,
)


@pytest.mark.parametrize(
    ("api", "version", "request_header", "response_header"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.CONTROLLED_SHUTDOWN, 0, 0, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 1, 1, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 3, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 4, 2, 0),  # its response must be readable by all clients
    ],
)
def test_header_versions_follow_the_flexible_versions(
    api: ApiKey, version: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(api, version) == request_header
    assert response_header_version(api, version) == response_header


@pytest.mark.parametrize("version", [8, 9])
def test_response_starts_with_room_for_the_size_and_the_declared_header(version: int) -> None:
    declared = encode(
        ResponseHeader(correlation_id=-77), response_header_version(ApiKey.PRODUCE, version)
    )
    assert start_response(ApiKey.PRODUCE, version, -77) == bytes(4) + declared


@pytest.mark.parametrize("client_id", ["", "kctl", "ключ", None])
@pytest.mark.parametrize("version", [8, 9])
def test_header_gives_client_and_where_the_body_begins(client_id: str | None, version: int) -> None:
    header = RequestHeader(
        request_api_key=ApiKey.PRODUCE,
        request_api_version=version,
        correlation_id=-5,
        client_id=client_id,
    )
    data = encode(header, request_header_version(ApiKey.PRODUCE, version))
    assert decode_request_header(memoryview(data + b"body")) == (header, len(data))


@pytest.mark.parametrize("client_id", ["", "kctl", "ключ", None])
@pytest.mark.parametrize("tags", [None, {7: b"new"}])
@pytest.mark.parametrize(
    ("api_key", "version"),
    [(0, 8), (0, 9), (1, 17), (7, 0), (7, 1), (7, 3), (18, 0), (18, 3), (52, 0), (-1, 0)],
)
def test_short_way_reads_a_header_as_the_declared_one_wherever_it_ends(
    api_key: int, version: int, tags: dict[int, bytes] | None, client_id: str | None
) -> None:
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=-5,
        client_id=client_id,
    )
    header.unknown_tags = tags
    data = encode(header, 2)
    for end in range(len(data) + 1):
        frame = memoryview(data)[:end]
        try:
            told, body = decode_request_header(frame)
        except DecodeError as error:
            with pytest.raises(DecodeError, match=re.escape(str(error))):
                read_request_header(frame)
        else:
            fields = (told.request_api_key, told.request_api_version, told.correlation_id)
            assert read_request_header(frame) == (*fields, told.client_id, body)


def test_unknown_version_still_gives_a_header() -> None:
    header = RequestHeader(request_api_key=18, request_api_version=99, correlation_id=3)
    assert decode_request_header(encode(header, 2))[0].request_api_version == 99


@pytest.mark.parametrize("length", range(4))
def test_frame_shorter_than_api_and_version_is_refused(length: int) -> None:
    with pytest.raises(DecodeError, match=f"a request of {length} bytes is too short"):
        decode_request_header(bytes(length))


@pytest.mark.parametrize("api_key", [-1, 52, 32767])
def test_unknown_api_is_refused_by_its_key(api_key: int) -> None:
    with pytest.raises(DecodeError, match=f"unknown API key {api_key}"):
        decode_request_header(api_key.to_bytes(2, "big", signed=True) + bytes(20))


def test_regression_header_of_a_large_request_is_read_without_copying_the_request() -> None:
    header = RequestHeader(request_api_key=0, request_api_version=9, client_id="producer")
    frame = memoryview(bytearray(encode(header, 2) + bytes(5_000_000)))
    decode_request_header(frame)
    tracemalloc.start()
    try:
        assert decode_request_header(frame)[0] == header
        assert tracemalloc.get_traced_memory()[1] < 10_000
    finally:
        tracemalloc.stop()
