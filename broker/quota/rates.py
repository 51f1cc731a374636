"""Rates over sliding windows, and token buckets, as Kafka's metrics compute them."""

import math
from typing import Final, NamedTuple

MAX_THROTTLE_MS = 2**31 - 1


class Windows(NamedTuple):
    """How a rate is measured."""

    num_samples: int
    """`quota.window.num`"""
    window_ms: int
    """`quota.window.size.seconds`"""


DEFAULT_WINDOWS: Final = Windows(11, 1000)
"""Kafka's defaults."""


class SampledRate:
    """Kafka's Rate: the sum of samples, divided by the time that they cover.

    A sample collects the values of one window. There is one more than `num_samples`, because the
    oldest usually overlaps the beginning of the time that counts. A sample without events for the
    whole time is dropped. The time that the samples cover counts as at least all windows but one,
    so that the first burst of a new client does not look like a high rate.
    """

    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[list[float]] = []
        """Start, time of the last event, and sum of each sample, oldest first."""

    def record(self, value: float, now_ms: float) -> None:
        """Add a value to the current sample."""
        samples, (num_samples, window_ms) = self._samples, self._windows
        if not samples or now_ms - samples[-1][0] >= window_ms:
            samples.append([now_ms, now_ms, 0.0])
            if len(samples) > num_samples + 1:
                del samples[0]
        samples[-1][1] = now_ms
        samples[-1][2] += value

    def measure(self, now_ms: float) -> tuple[float, float]:
        """The rate per second, and the milliseconds over which it is measured."""
        num_samples, window_ms = self._windows
        expired_ms = now_ms - num_samples * window_ms
        self._samples = [sample for sample in self._samples if sample[1] > expired_ms]
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0.0
        num_full = int(elapsed_ms // window_ms)
        if num_full < num_samples - 1:
            elapsed_ms += (num_samples - 1 - num_full) * window_ms
        elapsed_ms = max(elapsed_ms, 1)
        return sum(sample[2] for sample in self._samples) * 1000 / elapsed_ms, elapsed_ms


def throttle_ms(rate: float, limit: float, elapsed_ms: float) -> int:
    """How long to wait until a rate is within its limit, if nothing else is recorded.

    If O is the observed rate over a window W and T the limit, O * W / (W + X) = T gives
    X = (O - T) / T * W.
    """
    if rate <= limit:
        return 0
    if limit <= 0:
        return MAX_THROTTLE_MS
    return min(math.floor((rate - limit) / limit * elapsed_ms + 0.5), MAX_THROTTLE_MS)


class TokenBucket:
    """Tokens that are refilled at the quota's rate; the bucket holds those of all windows.

    A bucket may be overdrawn once; the client is then throttled until it is refilled to zero.
    """

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows, limit: float, now_ms: float) -> None:
        self._windows = windows
        self._tokens = self._burst(limit)
        self._updated_ms = now_ms

    def _burst(self, limit: float) -> float:
        return self._windows.num_samples * self._windows.window_ms / 1000 * limit

    def tokens(self, limit: float, now_ms: float) -> float:
        """How many there are; negative if the bucket is overdrawn."""
        refilled = self._tokens + limit * (now_ms - self._updated_ms) / 1000
        self._tokens = min(self._burst(limit), refilled)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, num: float, limit: float, now_ms: float) -> None:
        """Take tokens, also more than there are."""
        self._tokens = min(self._burst(limit), self.tokens(limit, now_ms) - num)

    def throttle_ms(self, limit: float, now_ms: float) -> int:
        """How long until the bucket is not overdrawn."""
        tokens = self.tokens(limit, now_ms)
        if tokens >= 0:
            return 0
        if limit <= 0:
            return MAX_THROTTLE_MS
        return min(math.floor(-tokens / limit * 1000 + 0.5), MAX_THROTTLE_MS)
