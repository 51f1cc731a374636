"""The segments of one log, by base offset."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from broker.log.segment import LogSegment


class LogSegments:
    """Invariant: base offsets increase; a loaded log always has an active (last) segment."""

    __slots__ = ("_offsets", "_segments")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._segments: list[LogSegment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(tuple(self._segments))

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """The base offsets of all segments, increasing."""
        return tuple(self._offsets)

    @property
    def active(self) -> LogSegment:
        """The segment that is appended to."""
        return self._segments[-1]

    @property
    def first(self) -> LogSegment:
        """The segment with the lowest offsets."""
        return self._segments[0]

    @property
    def size_in_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return sum(segment.size for segment in self._segments)

    def add(self, segment: LogSegment) -> None:
        """Put a segment in its place; it replaces one with the same base offset."""
        index = bisect_left(self._offsets, segment.base_offset)
        if self._offsets[index : index + 1] == [segment.base_offset]:
            self._segments[index] = segment
        else:
            self._offsets.insert(index, segment.base_offset)
            self._segments.insert(index, segment)

    def remove(self, segments: Iterable[LogSegment]) -> None:
        """Remove segments, unless another one has the same base offset by now."""
        gone = {id(segment) for segment in segments}
        self._segments = [segment for segment in self._segments if id(segment) not in gone]
        self._offsets = [segment.base_offset for segment in self._segments]

    def floor(self, offset: int) -> LogSegment | None:
        """The last segment that begins at or before `offset`."""
        index = bisect_right(self._offsets, offset)
        return self._segments[index - 1] if index else None

    def higher(self, segment: LogSegment) -> LogSegment | None:
        """The segment after this one."""
        index = bisect_right(self._offsets, segment.base_offset)
        return self._segments[index] if index < len(self._segments) else None

    def between(self, start: int, end: int) -> list[LogSegment]:
        """The segments that can hold an offset in [start, end), from the floor of `start` on."""
        if start >= end:
            return []
        first = max(bisect_right(self._offsets, start) - 1, 0)
        return self._segments[first : bisect_left(self._offsets, end)]

    def inactive_from(self, offset: int) -> list[LogSegment]:
        """The inactive segments that can hold `offset` or a later one."""
        return self.between(offset, self._offsets[-1])
