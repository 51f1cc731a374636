"""Ranges in options, and the estimated number of distinct keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.cli.errors import CliError
from kctl.dump.reading.filters import EVERYTHING, Range, parse_offsets, parse_times
from kctl.dump.stats.distinct import KEPT, DistinctCounter

NOW_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-15m:", Range(NOW_MS - 15 * MINUTE_MS, EVERYTHING.last)),
        ("-1h:-30m", Range(NOW_MS - 60 * MINUTE_MS, NOW_MS - 30 * MINUTE_MS)),
        ("-1d:now", Range(NOW_MS - 24 * 60 * MINUTE_MS, NOW_MS)),
        ("1699999999000:1700000000000", Range(NOW_MS - 1000, NOW_MS)),
        ("2023-11-14T22:13:20", Range(NOW_MS, EVERYTHING.last)),
        ("2023-11-14T22:12:20:2023-11-14T22:13:20", Range(NOW_MS - MINUTE_MS, NOW_MS)),
        ("2023-11-14T23:13:20+01:00:", Range(NOW_MS, EVERYTHING.last)),
        (":2023-11-14T22:13:20Z", Range(EVERYTHING.first, NOW_MS)),
        ("2023-11-14:2023-11-15", Range(1_699_920_000_000, 1_700_006_400_000)),
    ],
)
def test_times_are_calendar_epoch_or_relative(text: str, expected: Range) -> None:
    assert parse_times(text, NOW_MS) == expected


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_offsets_are_a_range_with_both_ends(first: int, last: int) -> None:
    wanted = parse_offsets(f"{first}:{last}")

    assert wanted == (first, last)
    assert (first in wanted) == (first <= last) == (last in wanted)


@pytest.mark.parametrize("text", ["", "x", "1:2:3", "1-2"])
def test_invalid_offsets_are_refused(text: str) -> None:
    with pytest.raises(CliError, match="expected FIRST:LAST"):
        parse_offsets(text)


def test_few_keys_are_counted_exactly() -> None:
    counter = DistinctCounter()
    for _ in range(3):
        counter.add(b"%d" % number for number in range(1000))

    assert (counter.count, counter.is_exact) == (1000, True)


def test_many_keys_are_estimated_in_bounded_memory() -> None:
    counter = DistinctCounter()
    for start in range(0, 100_000, 100):
        counter.add(b"%d" % number for number in range(start, start + 100))

    assert not counter.is_exact
    assert counter.count == pytest.approx(100_000, rel=0.05)
    assert len(counter._hashes) <= 2 * KEPT
