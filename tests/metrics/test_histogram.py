"""Histograms: quantiles within a bucket of the exact ones, rotation, extremes."""

from hypothesis import given
from hypothesis import strategies as st

from broker.metrics.histogram import Histogram, quantiles_ms


@given(st.lists(st.integers(0, 10**9), min_size=1), st.floats(0.01, 1))
def test_quantile_is_within_a_quarter_of_the_exact_one(micros: list[int], quantile: float) -> None:
    histogram = Histogram()
    for value in micros:
        histogram.record((value + 0.5) / 1_000_000)
    ordered = sorted(micros)
    rank = quantile * len(ordered)
    exact = next(v for i, v in enumerate(ordered, 1) if i >= rank)
    (found,) = quantiles_ms(histogram.counts(), (quantile,))
    assert exact <= found * 1000 + 1 <= exact * 1.25 + 2
    assert histogram.count == len(micros)


def test_durations_beyond_the_last_bucket_count_there() -> None:
    histogram = Histogram()
    histogram.record(1e9)
    assert sum(histogram.counts()) == 1


def test_quantiles_forget_after_two_rotations_and_counts_do_not() -> None:
    histogram = Histogram()
    histogram.record(5.0)
    histogram.rotate()
    histogram.record(0.001)
    assert quantiles_ms(histogram.counts(), (1.0,))[0] >= 5000
    histogram.rotate()
    assert quantiles_ms(histogram.counts(), (1.0,))[0] < 2
    assert histogram.count == 2


def test_empty_histogram_has_zeros() -> None:
    assert quantiles_ms(Histogram().counts(), (0.5, 0.99)) == [0.0, 0.0]
