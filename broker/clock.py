"""Time, as something that can be handed in: production reads the system, tests turn the hands."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the broker asks of time."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch: what goes into records and files."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: what timeouts are measured with."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """See Clock."""
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved; for tests and for replaying."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """See Clock."""
        return self._now_ms

    def monotonic(self) -> float:
        """See Clock."""
        return self._now_ms / 1000

    def advance(self, ms: int) -> None:
        """Move both hands forward."""
        self._now_ms += ms
