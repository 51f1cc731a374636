"""Confluent's wire format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.registry.schemas import UndecodableValue
from kctl.registry.wire import join_indexes, join_value, split_indexes, split_value

INT32 = st.integers(0, (1 << 31) - 1)


@given(INT32, st.binary())
def test_split_returns_what_was_joined(schema_id: int, payload: bytes) -> None:
    assert split_value(join_value(schema_id, payload)) == (schema_id, payload)


@given(st.lists(INT32, min_size=1, max_size=6), st.binary())
def test_message_indexes_return_as_written(indexes: list[int], message: bytes) -> None:
    assert split_indexes(join_indexes(indexes, message)) == (tuple(indexes), message)


def test_first_message_takes_one_byte() -> None:
    assert join_indexes((0,), b"m") == b"\0m"
    assert join_indexes((1,), b"m") == b"\x02\x02m"


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", b'{"a": 1}', b"\x01\0\0\0\x01x"])
def test_values_without_prefix_are_undecodable(data: bytes) -> None:
    with pytest.raises(UndecodableValue):
        split_value(data)


@given(st.binary(max_size=20))
def test_any_bytes_are_split_or_undecodable(payload: bytes) -> None:
    try:
        indexes, _ = split_indexes(payload)
    except UndecodableValue:
        return
    assert indexes
