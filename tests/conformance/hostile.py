"""Malformed and unusual requests; the responses of Apache Kafka and ours are compared."""

from typing import Final, NamedTuple

from broker.errors import ErrorCode
from broker.model import Uuid
from broker.net.client import error_codes
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from broker.protocol.messages.describe_acls import DescribeAclsRequest
from broker.protocol.messages.describe_cluster import DescribeClusterRequest
from broker.protocol.messages.envelope import EnvelopeRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.wire import WireClient, read_response, request_frame


def with_size(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def header(api_key: int, version: int) -> bytes:
    """Key, version, correlation id 77, no client id."""
    numbers = (api_key.to_bytes(2, "big", signed=True), version.to_bytes(2, "big", signed=True))
    return b"".join(numbers) + (77).to_bytes(4, "big") + b"\xff\xff"


_INTRODUCTION = ApiVersionsRequest(client_software_name="test", client_software_version="1")
_BY_ID = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=Uuid(b"u" * 16))])
_ACL_ELEMENTS: Final = (
    "resource_type_filter",
    "pattern_type_filter",
    "operation",
    "permission_type",
)


def _describe_acls(number: int, *elements: str) -> DescribeAclsRequest:
    """A filter for all ACLs (1 is ANY), but with another number in some of its elements."""
    numbers = dict.fromkeys(_ACL_ELEMENTS, 1) | dict.fromkeys(elements, number)
    return DescribeAclsRequest(
        resource_type_filter=numbers["resource_type_filter"],
        pattern_type_filter=numbers["pattern_type_filter"],
        operation=numbers["operation"],
        permission_type=numbers["permission_type"],
    )


CLOSED: Final = "closed"


class Hostile(NamedTuple):
    """The bytes to send, and Kafka's error code, in the form of which API."""

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
    Hostile("Envelope", with_size(request_frame(EnvelopeRequest(request_principal=b"x"), 0))),
    *(
        Hostile(
            f"DescribeAcls of the UNKNOWN {element}",
            with_size(request_frame(_describe_acls(0, element), 3)),
        )
        for element in _ACL_ELEMENTS
    ),
    Hostile(
        "DescribeAcls with numbers that are not assigned",
        with_size(request_frame(_describe_acls(99, *_ACL_ELEMENTS), 3)),
        ErrorCode.SECURITY_DISABLED,
        api_key=29,
        version=3,
    ),
    Hostile(
        "CreateAcls of an UNKNOWN operation",
        with_size(request_frame(CreateAclsRequest(creations=[AclCreation(resource_type=2)]), 3)),
    ),
    Hostile(
        "DeleteAcls of an UNKNOWN operation",
        with_size(request_frame(DeleteAclsRequest(filters=[DeleteAclsFilter()]), 3)),
    ),
]


def answer_to(hostile: Hostile, address: str) -> str | ErrorCode:
    """The reaction of a broker: CLOSED, or the error code of its response."""
    with WireClient(address) as wire:
        wire.socket.sendall(hostile.data)
        frame = wire.receive()
        if frame is None:
            return CLOSED
        codes = error_codes(read_response(frame, hostile.api_key, hostile.version))
        return ErrorCode(codes[0])
