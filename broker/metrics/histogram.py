"""Durations in buckets on a logarithmic scale, four per doubling: quantiles within 25 %.

Quantiles cover the last one to two minutes, so that they show what happens now; Kafka's decaying
reservoirs serve the same purpose. Count and sum cover everything since the start.
"""

from typing import Final

_BUCKETS: Final = 144
"""Enough for 2^35 microseconds, which is ten hours; longer durations count as that."""
_LAST: Final = _BUCKETS - 1
_MICROSECONDS: Final = 1_000_000


class Histogram:
    """Recorded in seconds.

    Field `_recent`: counts per bucket since the last rotation; `_previous`: those of the interval
    before. Invariant: the sum of both covers at least one whole interval once one has passed.
    """

    __slots__ = ("_previous", "_recent", "count", "sum_s")

    def __init__(self) -> None:
        self.count = 0
        self.sum_s = 0.0
        self._recent = [0] * _BUCKETS
        self._previous = [0] * _BUCKETS

    def record(self, duration_s: float) -> None:
        """Count one duration."""
        micros = int(duration_s * _MICROSECONDS)
        shift = micros.bit_length() - 3
        bucket = micros if shift <= 0 else (shift << 2) + (micros >> shift)
        self._recent[bucket if bucket < _BUCKETS else _LAST] += 1
        self.count += 1
        self.sum_s += duration_s

    def rotate(self) -> None:
        """Begin a new interval; called once per minute."""
        self._previous = self._recent
        self._recent = [0] * _BUCKETS

    def counts(self) -> list[int]:
        """Counts per bucket over the last one to two intervals."""
        return [a + b for a, b in zip(self._recent, self._previous, strict=True)]


def quantiles_ms(counts: list[int], quantiles: tuple[float, ...]) -> list[float]:
    """The quantiles in milliseconds, in ascending order as asked; zeros if there are no counts."""
    total = sum(counts)
    found = []
    bucket, seen = 0, counts[0]
    for quantile in quantiles:
        rank = quantile * total
        while seen < rank and bucket < _LAST:
            bucket += 1
            seen += counts[bucket]
        found.append(_upper_bound_us(bucket) / 1000 if total else 0.0)
    return found


def _upper_bound_us(bucket: int) -> int:
    """The largest duration of a bucket; below 8 µs each microsecond has its own."""
    if bucket < 8:
        return bucket
    shift = (bucket >> 2) - 1
    mantissa = (bucket & 3) + 4
    return ((mantissa + 1) << shift) - 1
