"""Durations in buckets on a logarithmic scale, four per doubling: quantiles within 25 %.

Quantiles cover the last one to two minutes, so that they show what happens now; Kafka's decaying
reservoirs serve the same purpose. The count covers everything since the start.

Recording a duration is a list's `append`, and nothing else: it is on the path of every request.
Durations are sorted into buckets many at a time, which costs a tenth of doing it one by one.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

_BUCKETS: Final = 144
"""Enough for 2^35 microseconds, which is ten hours; longer durations count as that."""
_LAST: Final = _BUCKETS - 1
_MICROSECONDS: Final = 1_000_000


def _upper_bound_us(bucket: int) -> int:
    """The largest duration of a bucket; below 8 µs each microsecond has its own."""
    if bucket < 8:
        return bucket
    shift = (bucket >> 2) - 1
    mantissa = (bucket & 3) + 4
    return ((mantissa + 1) << shift) - 1


_EDGES_S: Final = [(_upper_bound_us(bucket) + 1) / _MICROSECONDS for bucket in range(_LAST)]
"""Durations below this are in this bucket or a lower one; the last bucket has no edge."""


class Histogram:
    """Recorded in seconds.

    Field `record`: count one duration. `_recorded`: durations that are not in buckets yet.
    Field `_recent`: counts per bucket since the last rotation; `_previous`: those of the interval
    before. Invariant: the sum of both covers at least one whole interval once one has passed.

    One thread records, settles and rotates; others may read.
    """

    __slots__ = ("_previous", "_recent", "_recorded", "_settled", "record")

    def __init__(self) -> None:
        self._settled = 0
        self._recorded: list[float] = []
        self.record: Callable[[float], None] = self._recorded.append
        self._recent = [0] * _BUCKETS
        self._previous = [0] * _BUCKETS

    @property
    def count(self) -> int:
        """How many durations were recorded since the start."""
        return self._settled + len(self._recorded)

    def settle(self) -> None:
        """Sort what was recorded into buckets; to be called every thousand durations or so."""
        durations_s = self._recorded.copy()
        self._recent = [a + b for a, b in zip(self._recent, _counted(durations_s), strict=True)]
        self._settled += len(durations_s)
        del self._recorded[: len(durations_s)]

    def rotate(self) -> None:
        """Begin a new interval; called once per minute."""
        self.settle()
        self._previous = self._recent
        self._recent = [0] * _BUCKETS

    def counts(self) -> list[int]:
        """Counts per bucket over the last one to two intervals."""
        settled = [a + b for a, b in zip(self._recent, self._previous, strict=True)]
        return [a + b for a, b in zip(settled, _counted(self._recorded.copy()), strict=True)]


def _counted(durations_s: list[float]) -> list[int]:
    """Counts per bucket."""
    if not durations_s:
        return [0] * _BUCKETS
    durations_s.sort()
    below = [bisect_left(durations_s, edge_s) for edge_s in _EDGES_S]
    below.append(len(durations_s))
    return [after - before for before, after in zip([0, *below], below, strict=False)]


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
