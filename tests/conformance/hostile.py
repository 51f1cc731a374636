"""Inputs that no honest client sends; what comes back is compared between Apache Kafka and us."""

from typing import Final, NamedTuple

from broker.errors import ErrorCode
from broker.model import Uuid
from broker.net.client import outcomes
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.describe_cluster import DescribeClusterRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.api.wire import Wire, read_response, request_frame


def with_size(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def header(api_key: int, version: int) -> bytes:
    """Key, version, correlation id 77, no client id."""
    numbers = (api_key.to_bytes(2, "big", signed=True), version.to_bytes(2, "big", signed=True))
    return b"".join(numbers) + (77).to_bytes(4, "big") + b"\xff\xff"


_INTRODUCTION = ApiVersionsRequest(client_software_name="test", client_software_version="1")
_BY_ID = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=Uuid(b"u" * 16))])

CLOSED: Final = "closed"


class Hostile(NamedTuple):
    """What is sent, and the error code that Kafka answers in which API's form."""

    name: str
    data: bytes
    answer: str | ErrorCode = CLOSED
    api_key: int = 18
    version: int = 0


HOSTILE: Final = [
    Hostile("no bytes in the frame", with_size(b"")),
    Hostile("negative size", (-1).to_bytes(4, "big", signed=True) + bytes(20)),
    Hostile("size above socket.request.max.bytes", (104857601).to_bytes(4, "big") + bytes(20)),
    Hostile("three bytes", with_size(b"\0\x12\0")),
    Hostile("unknown API", with_size(header(999, 0))),
    Hostile("negative API", with_size(header(-1, 0))),
    Hostile("unknown version of Metadata", with_size(header(3, 99) + bytes(20))),
    Hostile("negative version of Metadata", with_size(header(3, -1) + bytes(20))),
    Hostile("ApiVersions cut off", with_size(request_frame(_INTRODUCTION, 3)[:-3])),
    Hostile("two billion topics", with_size(header(3, 8) + b"\x7f\xff\xff\xff")),
    Hostile("endless varint", with_size(header(3, 9) + b"\0" + b"\xff" * 12)),
    Hostile("negative string", with_size(header(3, 1) + b"\0\0\0\1\x80\0")),
    Hostile("tag of two gigabytes", with_size(header(3, 9) + b"\x01\0\xff\xff\xff\xff\x07")),
    Hostile(
        "ApiVersions of the future",
        with_size(header(18, 99) + b"\0anything"),
        ErrorCode.UNSUPPORTED_VERSION,
    ),
    Hostile(
        "ApiVersions one above ours",
        with_size(header(18, 5) + b"\0\5test\0021\0"),
        ErrorCode.UNSUPPORTED_VERSION,
    ),
    Hostile("ApiVersions below zero", with_size(header(18, -1)), ErrorCode.UNSUPPORTED_VERSION),
    Hostile(
        "ApiVersions with bytes behind it",
        with_size(request_frame(_INTRODUCTION, 3) + b"more"),
        ErrorCode.NONE,
        version=3,
    ),
    Hostile(
        "ApiVersions without a name",
        with_size(request_frame(ApiVersionsRequest(), 3)),
        ErrorCode.INVALID_REQUEST,
        version=3,
    ),
    Hostile(
        "unknown tagged field",
        with_size(request_frame(_INTRODUCTION, 3)[:-1] + b"\x01\x63\x02hi"),
        ErrorCode.NONE,
        version=3,
    ),
    Hostile(
        "client id that is not UTF-8",
        with_size(b"\0\x12\0\x01" + (77).to_bytes(4, "big") + b"\0\x02\xff\xfe"),
        ErrorCode.NONE,
        version=1,
    ),
    Hostile(
        "Metadata by id before there were ids",
        with_size(request_frame(_BY_ID, 10)),
        ErrorCode.INVALID_REQUEST,
        api_key=3,
        version=10,
    ),
    Hostile(
        "Metadata of an unknown id",
        with_size(request_frame(_BY_ID, 12)),
        ErrorCode.UNKNOWN_TOPIC_ID,
        api_key=3,
        version=12,
    ),
    Hostile(
        "DescribeCluster of controllers",
        with_size(request_frame(DescribeClusterRequest(endpoint_type=2), 1)),
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        api_key=60,
        version=1,
    ),
    Hostile(
        "DescribeCluster of nothing known",
        with_size(request_frame(DescribeClusterRequest(endpoint_type=9), 1)),
        ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        api_key=60,
        version=1,
    ),
]


def answer_to(hostile: Hostile, address: str) -> str | ErrorCode:
    """What a broker does: CLOSED, or the error code of its answer."""
    with Wire(address) as wire:
        wire.socket.sendall(hostile.data)
        frame = wire.receive()
        if frame is None:
            return CLOSED
        codes = outcomes(read_response(frame, hostile.api_key, hostile.version))
        return ErrorCode(codes[0])
