"""Clocks that are passed in: the system's in production, a manual one in tests."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock and monotonic time."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch, for timestamps in records and files."""
        ...

    def monotonic(self) -> float:
        """Monotonic seconds, for timeouts."""
        ...


class SystemClock:
    """The system's clock."""

    def now_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()


class ManualClock:
    """A clock that advances only by `advance`; for tests and simulations."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """See Clock."""
        return self._now_ms

    def monotonic(self) -> float:
        """See Clock."""
        return self._now_ms / 1000

    def advance(self, ms: int) -> None:
        """Move the time forward."""
        self._now_ms += ms
