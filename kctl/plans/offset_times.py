"""When an offset was written, from a table of log end offsets seen over time.

The method of kafka-lag-exporter: reading no records, it also works where record timestamps are
wrong. Between two points time is interpolated; before the first point it is extrapolated from the
slope of the table. The answer is at most as exact as the interval of the points.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from broker.model import TopicPartition

_MAX_POINTS: Final = 60

Point = tuple[int, float]
"""A log end offset, and when it was seen."""


@dataclass
class OffsetTimes:
    """The points of all partitions.

    *Invariant*: offsets and times of a partition increase strictly from point to point; a log that
    does not grow moves only the time of its last point.
    """

    _points: dict[TopicPartition, list[Point]] = field(default_factory=dict)

    def add(self, place: TopicPartition, end_offset: int, time_s: float) -> None:
        """Add what was seen now; a log that was recreated or truncated starts again."""
        points = self._points.setdefault(place, [])
        if points and end_offset < points[-1][0]:
            points.clear()
        if len(points) > 1 and points[-1][0] == end_offset == points[-2][0]:
            points[-1] = (end_offset, time_s)
            return
        points.append((end_offset, time_s))
        if len(points) > _MAX_POINTS:
            del points[1]  # the first one keeps the table's reach

    def keep(self, places: set[TopicPartition]) -> None:
        """Forget all other partitions."""
        for place in self._points.keys() - places:
            del self._points[place]

    def lag_seconds(self, place: TopicPartition, offset: int, now_s: float) -> float | None:
        """How long ago `offset` was the log end; 0 if it still is, None if that is unknown."""
        points = self._points.get(place, [])
        if not points:
            return None
        if offset >= points[-1][0]:
            return 0.0
        if len(points) < 2:
            return None
        return max(0.0, now_s - _time_of(points, offset))


def _time_of(points: list[Point], offset: int) -> float:
    """The time at which `offset` was the log end, between two points or before the first."""
    at = bisect_left(points, (offset, float("-inf")))
    (low, low_s), (high, high_s) = (points[at - 1], points[at]) if at else (points[0], points[-1])
    if at < len(points) and points[at][0] == offset:
        return points[at][1]
    if high == low:
        return low_s
    return low_s + (offset - low) / (high - low) * (high_s - low_s)
