"""Requests and responses as real clients, tools and brokers exchanged them."""

import pytest

from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode_from, encode
from broker.protocol.headers import (
    ResponseHeader,
    decode_request_header,
    request_header_version,
    response_header_version,
)
from broker.protocol.messages import request_class, response_class
from tests.protocol.golden import Exchange, exchanges

EXCHANGES = [
    pytest.param(exchange, id=f"{ApiKey(exchange.api_key).name}-v{exchange.version}-{number}")
    for number, exchange in enumerate(exchanges())
]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_request_frame_decodes_and_encodes_back_byte_for_byte(exchange: Exchange) -> None:
    header, body = decode_request_header(exchange.request)
    assert (header.request_api_key, header.request_api_version) == exchange[:2]
    cls = request_class(exchange.api_key)
    request, end = decode_from(cls, exchange.request, body, exchange.version)
    assert end == len(exchange.request)
    header_version = request_header_version(exchange.api_key, exchange.version)
    assert encode(header, header_version) + encode(request, exchange.version) == exchange.request


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_response_frame_decodes_and_encodes_back_byte_for_byte(exchange: Exchange) -> None:
    header_version = response_header_version(exchange.api_key, exchange.version)
    header, body = decode_from(ResponseHeader, exchange.response, 0, header_version)
    assert header.correlation_id == decode_request_header(exchange.request)[0].correlation_id
    cls = response_class(exchange.api_key)
    response, end = decode_from(cls, exchange.response, body, exchange.version)
    assert end == len(exchange.response)
    assert encode(header, header_version) + encode(response, exchange.version) == exchange.response
