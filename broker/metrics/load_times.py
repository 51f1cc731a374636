"""How long coordinators took to load their partitions."""

from collections import deque
from typing import Final

_WINDOW_MS: Final = 60_000
"""Kafka's sensor keeps two windows of 30 s."""
_MAX_LOADS: Final = 1_000


class LoadTimes:
    """The loads of the last minute. Written by the event loop, read by other threads."""

    def __init__(self) -> None:
        self._loads: deque[tuple[int, int]] = deque(maxlen=_MAX_LOADS)
        """When a load ended and how long it took, in milliseconds."""

    def record(self, started_ms: int, ended_ms: int) -> None:
        """Add a load that has ended."""
        self._loads.append((ended_ms, ended_ms - started_ms))

    def recent_ms(self, now_ms: int) -> list[int]:
        """Durations of the loads that ended within the last minute."""
        return [took for ended, took in self._loads.copy() if ended >= now_ms - _WINDOW_MS]
