"""Malformed bytes: decoded or refused with a clear DecodeError, without using much memory.

Every message in every version is given truncated, flipped, random and exaggerating bytes. Chance is
seeded by the message, so that a failure comes again.
"""

import random
import re
import tracemalloc
from collections.abc import Iterator

import pytest

from broker.protocol.codec import decode, decode_from, encode
from broker.protocol.errors import DecodeError
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.primitives import MAX_STRING_BYTES
from broker.protocol.schema import Message
from tests.protocol.golden import declared, samples

MESSAGES = [pytest.param(cls, id=cls.__name__) for cls in declared()]

# Lengths and counts that promise far more than there is, in each way a length is written.
EXAGGERATIONS = [
    b"\x7f\xff\xff\xff",  # 2^31 - 1
    b"\x80\x00\x00\x00",
    b"\x7f\xff",
    b"\xff\xff\xff\xff\x07",  # the same as varints: the largest allowed,
    b"\xff\xff\xff\xff\x0f",  # above it,
    b"\xff" * 12,  # and without an end
]


def decode_or_refuse(cls: type[Message], data: bytes, version: int) -> Message | None:
    """The message, or None if the bytes were refused with a DecodeError."""
    try:
        assert decode_from(cls, data, 0, version)[1] <= len(data)
        return decode(cls, data, version)
    except DecodeError as error:
        told = rf"{cls.__name__} v{version}: ([a-z0-9_. ]+ at byte \d+: .+|ends at byte \d+ of \d+)"
        assert re.fullmatch(told, str(error)), error
        assert not str(error).endswith(": None"), error
        return None


def originals(cls: type[Message]) -> Iterator[tuple[int, bytes]]:
    """Valid bytes of every version: Kafka's samples."""
    for version in declared()[cls]:
        for sample in samples().get((cls, version), []):
            yield version, sample.data


@pytest.mark.parametrize("cls", MESSAGES)
def test_message_cut_off_at_any_byte_is_refused_or_another_message(cls: type[Message]) -> None:
    for version, data in originals(cls):
        for length in range(len(data)):
            message = decode_or_refuse(cls, data[:length], version)
            assert message is None or encode(message, version) == data[:length]


@pytest.mark.parametrize("cls", MESSAGES)
def test_bytes_behind_a_message_are_refused_by_decode_and_left_by_decode_from(
    cls: type[Message],
) -> None:
    for version, data in originals(cls):
        with pytest.raises(DecodeError, match=f"ends at byte {len(data)} of {len(data) + 1}$"):
            decode(cls, data + b"\0", version)
        assert decode_from(cls, b"before" + data + b"after", 6, version)[1] == 6 + len(data)


@pytest.mark.parametrize("cls", MESSAGES)
def test_flipped_and_random_bytes_are_refused_or_a_message_that_encodes(
    cls: type[Message],
) -> None:
    chance = random.Random(cls.__name__)
    for version, data in originals(cls):
        for _ in range(20):
            if chance.random() < 0.8 and data:
                hostile = bytearray(data)
                for _ in range(chance.choice((1, 1, 1, 4))):
                    hostile[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            else:
                hostile = bytearray(chance.randbytes(chance.randrange(60)))
            message = decode_or_refuse(cls, bytes(hostile), version)
            if message is not None:
                assert decode(cls, encode(message, version), version) == message


@pytest.mark.parametrize("cls", MESSAGES)
def test_exaggerated_lengths_are_refused_before_memory_is_taken(cls: type[Message]) -> None:
    chance = random.Random(cls.__name__)
    for version, data in originals(cls):
        positions = chance.sample(range(len(data) + 1), min(len(data) + 1, 25))
        hostile = [
            data[:position] + chance.choice(EXAGGERATIONS) + data[position:]
            for position in positions
        ]
        for frame in hostile:  # what is compiled for it stays, and is not to be counted
            decode_or_refuse(cls, frame, version)
        tracemalloc.start()
        try:
            for frame in hostile:
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                decode_or_refuse(cls, frame, version)
                _, peak = tracemalloc.get_traced_memory()
                assert peak - before < 16_000 + 50 * len(frame)
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("cls", "version", "field", "data"),
    [
        (MetadataRequest, 8, "topics", "7fffffff"),
        (MetadataRequest, 9, "topics", "ffffffff07"),
        (MetadataRequest, 9, "topics", "ffffffffffff"),
        (MetadataRequest, 9, "tagged fields", "01000000ffffffff07"),
        (MetadataRequest, 9, "topics.name", "02ffffffff07"),
        (ListGroupsRequest, 4, "states_filter", "ffffffff07"),
        (FetchResponse, 12, "responses", "00000000000000000000ffffffff07"),
    ],
)
def test_refusal_names_message_version_field_and_position(
    cls: type[Message], version: int, field: str, data: str
) -> None:
    with pytest.raises(DecodeError, match=rf"^{cls.__name__} v{version}: {field} at byte \d+: "):
        decode(cls, bytes.fromhex(data), version)


def test_position_is_the_first_byte_of_the_field() -> None:
    data = encode(MetadataRequest(topics=None), 8)[:-1]
    with pytest.raises(DecodeError, match=r"operations at byte 6: the bytes end here, at 6$"):
        decode(MetadataRequest, data, 8)


def test_string_longer_than_kafka_allows_is_refused_also_where_a_varint_could_say_it() -> None:
    longest = b"x" * MAX_STRING_BYTES
    good = b"\x02" + b"\x80\x80\x02" + longest + b"\x00" + b"\x01\x00\x00\x00"
    topics = decode(MetadataRequest, good, 9).topics
    assert topics is not None
    assert topics[0].name == longest.decode()
    bad = b"\x02" + b"\x81\x80\x02" + longest + b"x\x00" + b"\x01\x00\x00\x00"
    with pytest.raises(DecodeError, match=r"topics\.name at byte 1: 32768 bytes announced"):
        decode(MetadataRequest, bad, 9)


def test_regression_many_aborted_transactions_decode_from_a_view_of_the_frame() -> None:
    aborted = [AbortedTransaction(producer_id=n, first_offset=n * n) for n in range(50)]
    partition = PartitionData(aborted_transactions=aborted, records=b"batch")
    message = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    assert decode(FetchResponse, memoryview(encode(message, 12)), 12) == message


def test_regression_null_inside_a_nullable_array_is_refused() -> None:
    message = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_name="t", configuration_keys=["x"])]
    )
    data = encode(message, 4)
    null = data.replace(b"\x02x", b"\x00")
    with pytest.raises(DecodeError, match="configuration_keys at byte 4: null is not allowed"):
        decode(DescribeConfigsRequest, null, 4)


def test_bytes_that_are_not_utf8_are_replaced_in_a_string_as_kafka_does() -> None:
    data = b"\0\0\0\x01\0\x03a\xff\xfe"
    assert decode(MetadataRequest, data, 1) == MetadataRequest(
        topics=[MetadataRequestTopic(name="a\ufffd\ufffd")]
    )
