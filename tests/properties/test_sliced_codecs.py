"""Codecs in slices give the same messages and bytes as those without slices."""

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.api.table import TABLE
from broker.protocol.codec import decode_in_slices, encode, encode_in_slices
from broker.protocol.errors import DecodeError
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.primitives import uvarint
from broker.protocol.schema import Message
from broker.records.batch import iterate_batches
from broker.records.builder import BatchSettings, build_batch, recompress
from broker.records.layout import Codec
from broker.records.record import RecordTuple
from tests.properties.test_records import record_lists
from tests.protocol.strategies import messages


def finish(work: Generator[None, None, Any]) -> tuple[Any, int]:
    """The result of work in slices, and how often it yielded."""
    for count in range(1 << 30):
        try:
            next(work)
        except StopIteration as done:
            return done.value, count
    raise AssertionError


@st.composite
def requests(draw: st.DrawFn) -> tuple[Message, int]:
    """A request of any API and version."""
    cls = draw(st.sampled_from([row.request for row in TABLE.values()]))
    version = draw(st.integers(*cls.versions))
    return draw(messages(cls, version)), version


@given(requests())
def test_every_request_is_the_same_in_slices(sent: tuple[Message, int]) -> None:
    message, version = sent
    data = encode(message, version)
    (decoded, end), _ = finish(decode_in_slices(type(message), data, 0, version))
    assert (decoded, end) == (message, len(data))
    parts, _ = finish(encode_in_slices(decoded, version, bytearray()))
    assert b"".join(bytes(part) for part in parts) == data


def test_slices_are_short_however_entries_are_nested() -> None:
    for num_topics, num_partitions in ((1, 10_000), (100, 100), (10_000, 1)):
        topics = [
            ListOffsetsTopic(
                name="t",
                partitions=[ListOffsetsPartition(partition_index=n) for n in range(num_partitions)],
            )
            for _ in range(num_topics)
        ]
        request = ListOffsetsRequest(topics=topics)
        for version in (1, 6):
            data = encode(request, version)
            _, count = finish(decode_in_slices(ListOffsetsRequest, data, 0, version))
            assert count >= 30
            _, count = finish(encode_in_slices(request, version, bytearray()))
            assert count >= 30


def test_error_in_slices_names_the_field_and_the_position() -> None:
    data = uvarint(1001) + b"\x02a\0" * 999
    with pytest.raises(DecodeError, match=r"v9: topics\.name at byte 2999: the bytes"):
        finish(decode_in_slices(MetadataRequest, data, 0, 9))


@given(record_lists())
def test_recompressed_batch_is_the_one_that_is_built_from_its_records(
    rows: list[RecordTuple],
) -> None:
    rows = [(number, *row[1:]) for number, row in enumerate(rows)]
    batch = next(iterate_batches(build_batch(rows, BatchSettings(codec=Codec.ZSTD))))
    largest = max(row[1] for row in rows)
    for codec in Codec:
        moved = [(number + 7, *row[1:]) for number, row in enumerate(rows)]
        settings = BatchSettings(codec=codec)
        assert recompress(batch, 7, largest, settings) == build_batch(moved, settings)
