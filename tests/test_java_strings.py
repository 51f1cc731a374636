"""Expected values are what Java's String gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.java_strings import java_double, java_hash, java_length, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("group-a", 293_427_347),
        ("polygenelubricants", -(2**31)),
        ("é", 233),
        ("😀", 1_772_899),
    ],
)
def test_hash_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("group-a", 47),  # tests/golden/logs/magic2
        ("group-b", 48),
        ("simple-group", 30),
        ("golden-txn-1", 36),
        ("golden-txn-0", 37),
        ("", 0),
        ("polygenelubricants", 0),  # hashes to the smallest int, whose abs Java does not have
        ("é", 33),
        ("😀", 49),  # two UTF-16 units
    ],
)
def test_groups_and_transactional_ids_lie_where_kafka_puts_them(key: str, partition: int) -> None:
    assert partition_for(key, 50) == partition


def test_length_counts_utf16_units() -> None:
    assert [java_length(text) for text in ("", "abc", "é", "😀")] == [0, 3, 1, 2]


@given(st.text(), st.integers(1, 100))
def test_every_group_has_a_partition(group_id: str, num_partitions: int) -> None:
    assert 0 <= partition_for(group_id, num_partitions) < num_partitions


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0.0"),
        (1000.0, "1000.0"),
        (12.5, "12.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1.25e-5, "1.25E-5"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123_456_789.125, "1.23456789125E8"),
        (-1e18, "-1.0E18"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, expected: str) -> None:
    assert java_double(value) == expected
