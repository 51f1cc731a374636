"""Filters of a query that limit what is read: topic, partition, offset and timestamp.

Spark applies every filter itself, too. So a filter that is not understood is ignored, and one that
is may leave more rows than it selects, but never fewer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kctl.spark.planning.plan import OffsetRange

_LARGEST: Final = 2**63 - 1


@dataclass
class Limits:
    """What filters leave to read; ends are exclusive."""

    topics: set[str] | None = None
    partitions: set[int] | None = None
    first_partition: int = 0
    end_partition: int = _LARGEST
    first_offset: int = 0
    end_offset: int = _LARGEST
    since_ms: int | None = None
    until_ms: int | None = None
    understood: list[str] = field(default_factory=list)
    """The columns of filters that were used."""

    def narrow(self, filters: Iterable[Any]) -> None:
        """Take filters into account; they are joined by AND."""
        for each in filters:
            path: tuple[str, ...] = getattr(each, "attribute", ())
            if len(path) == 1 and self._use(path[0], type(each).__name__, _value(each)):
                self.understood.append(path[0])

    def _use(self, column: str, operator: str, value: Any) -> bool:
        if column == "topic":
            return self._use_topic(operator, value)
        if column == "partition":
            return self._use_partition(operator, value)
        if column == "offset":
            return self._use_offset(operator, value)
        return column == "timestamp" and self._use_time(operator, value)

    def _use_topic(self, operator: str, value: Any) -> bool:
        chosen = _equal_values(operator, value, str)
        if chosen is not None:
            self.topics = chosen if self.topics is None else self.topics & chosen
        return chosen is not None

    def _use_partition(self, operator: str, value: Any) -> bool:
        chosen = _equal_values(operator, value, int)
        if chosen is not None:
            self.partitions = chosen if self.partitions is None else self.partitions & chosen
            return True
        bounds = _bounds(operator, value)
        self.first_partition = max(self.first_partition, bounds[0])
        self.end_partition = min(self.end_partition, bounds[1])
        return bounds != (0, _LARGEST)

    def _use_offset(self, operator: str, value: Any) -> bool:
        chosen = _equal_values(operator, value, int)
        if chosen is not None:
            first, end = min(chosen, default=0), max(chosen, default=-1) + 1
        else:
            first, end = _bounds(operator, value)
        self.first_offset = max(self.first_offset, first)
        self.end_offset = min(self.end_offset, end)
        return (first, end) != (0, _LARGEST)

    def _use_time(self, operator: str, value: Any) -> bool:
        if not isinstance(value, datetime):
            return False
        # Rounded so that no record is left out: Kafka has milliseconds, Spark microseconds.
        floor = int(value.timestamp() * 1_000_000) // 1000
        if operator in ("GreaterThan", "GreaterThanOrEqual", "EqualTo"):
            self.since_ms = max(self.since_ms or floor, floor)
        if operator in ("LessThan", "LessThanOrEqual", "EqualTo"):
            self.until_ms = min(self.until_ms or floor + 1, floor + 1)
        return operator in (
            "GreaterThan",
            "GreaterThanOrEqual",
            "LessThan",
            "LessThanOrEqual",
            "EqualTo",
        )

    def within(self, offsets: OffsetRange) -> OffsetRange:
        """The part of a range to read; empty if its partition is not wanted."""
        is_wanted = (
            (self.topics is None or offsets.topic in self.topics)
            and (self.partitions is None or offsets.partition in self.partitions)
            and self.first_partition <= offsets.partition < self.end_partition
        )
        first = min(max(offsets.first_offset, self.first_offset), offsets.end_offset)
        end = max(first, min(offsets.end_offset, self.end_offset)) if is_wanted else first
        return OffsetRange(offsets.topic, offsets.partition, first, end)


def _value(each: Any) -> Any:
    return getattr(each, "value", None)


def _equal_values(operator: str, value: Any, kind: type) -> set[Any] | None:
    """The values of an equality or IN; None for other filters."""
    if operator in ("EqualTo", "EqualNullSafe") and isinstance(value, kind):
        return {value}
    if operator == "In" and all(isinstance(each, kind) for each in value or ()):
        return set(value)
    return None


def _bounds(operator: str, value: Any) -> tuple[int, int]:
    if not isinstance(value, int):
        return 0, _LARGEST
    return {
        "GreaterThan": (value + 1, _LARGEST),
        "GreaterThanOrEqual": (value, _LARGEST),
        "LessThan": (0, value),
        "LessThanOrEqual": (0, value + 1),
    }.get(operator, (0, _LARGEST))
