"""Varints: valid and invalid encodings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.primitives import INT32_MAX, read_uvarint, uvarint


@given(value=st.integers(0, INT32_MAX), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_varint_comes_back_and_ends_where_it_ended(value: int, before: bytes, after: bytes) -> None:
    encoded = uvarint(value)
    assert len(encoded) == max(1, -(-value.bit_length() // 7))
    data = before + encoded + after
    assert read_uvarint(data, len(before)) == (value, len(before) + len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (INT32_MAX, "ffffffff07")],
)
def test_varint_is_seven_bits_a_byte_lowest_first(value: int, encoded: str) -> None:
    assert uvarint(value).hex() == encoded


def test_varint_longer_than_needed_is_read_as_kafka_does() -> None:
    assert read_uvarint(b"\x81\x80\x80\x80\x00", 0) == (1, 5)


@pytest.mark.parametrize("data", [b"\x80\x80\x80\x80\x80\x00", b"\xff" * 6, b"\x80" * 1000])
def test_varint_of_more_than_five_bytes_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        read_uvarint(data, 0)


def test_varint_above_the_largest_length_is_refused() -> None:
    with pytest.raises(ValueError, match="exceeds 2147483647"):
        read_uvarint(b"\xff\xff\xff\xff\x08", 0)


def test_varint_that_is_cut_off_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        read_uvarint(b"\x80\x80", 0)
