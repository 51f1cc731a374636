"""Consumer lag of partitions and groups, and its trend."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from broker.model import TopicPartition
from kctl.model.groups import Group, Member

KEEPING_UP_MS = 10_000
"""Age of the first unread record up to which a consumer keeps up: twice the default of
auto.commit.interval.ms, because records count as unread until their offset is committed."""


class Verdict(StrEnum):
    """Assessment of one partition."""

    OK = "ok"
    """Nothing is unread, or the assigned member keeps up."""
    LAGGING = "lagging"
    """A member is assigned, and the first unread record is older than KEEPING_UP_MS."""
    STALLED = "stalled"
    """A member is assigned, and it commits no progress. Only a window of samples shows it."""
    UNREAD = "unread"
    """There are unread records, and no member is assigned."""
    NO_OFFSET = "no-offset"
    """No offset is committed; the consumer's auto.offset.reset applies."""
    LOST = "lost"
    """Records were deleted before the group had read them."""
    BEYOND = "beyond-end"
    """The committed offset is beyond the log end: the topic was recreated, or data was lost."""
    UNKNOWN = "unknown"
    """The log end offset is unknown."""


@dataclass(frozen=True)
class LogBounds:
    """Log start and end offsets of partitions; unknown ones are missing."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class PartitionLag:
    """One partition of one group."""

    group_id: str
    place: TopicPartition
    current_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    member: Member | None
    time_lag_ms: int | None = None
    """Age of the first unread record; 0 if all are read."""

    @property
    def lag(self) -> int | None:
        """Offsets between the committed offset and the log end."""
        if self.current_offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.current_offset

    @property
    def verdict(self) -> Verdict:
        """The most severe verdict that applies."""
        if self.log_end_offset is None:
            return Verdict.UNKNOWN
        if self.lag is None or self.current_offset is None:
            return Verdict.NO_OFFSET
        if self.lag < 0:
            return Verdict.BEYOND
        if self.log_start_offset is not None and self.current_offset < self.log_start_offset:
            return Verdict.LOST
        if self.lag == 0:
            return Verdict.OK
        if not self.member:
            return Verdict.UNREAD
        is_recent = self.time_lag_ms is not None and self.time_lag_ms <= KEEPING_UP_MS
        return Verdict.OK if is_recent else Verdict.LAGGING


@dataclass(frozen=True)
class GroupLag:
    """A group and its partitions."""

    group: Group
    partitions: tuple[PartitionLag, ...]

    @property
    def total_lag(self) -> int:
        """Sum over all partitions with a known lag."""
        return sum(partition.lag or 0 for partition in self.partitions)

    @property
    def max_lag(self) -> int:
        """The lag of the partition furthest behind."""
        return max((partition.lag or 0 for partition in self.partitions), default=0)

    @property
    def max_time_lag_ms(self) -> int | None:
        """Age of the oldest unread record; None if it is unknown."""
        known = [lag.time_lag_ms for lag in self.partitions if lag.time_lag_ms is not None]
        return max(known, default=None)


@dataclass(frozen=True)
class TopicLag:
    """The lag of one group on one topic."""

    group_id: str
    topic: str
    partitions: tuple[PartitionLag, ...]


class Trend(StrEnum):
    """Development of a partition's lag over a window of samples."""

    CAUGHT_UP = "caught-up"
    FALLING = "falling"
    STEADY = "steady"
    GROWING = "growing"
    STALLED = "stalled"
    """There are unread records, and the committed offset does not advance."""
    REWOUND = "rewound"
    """The committed offset decreased: it was reset."""
    UNKNOWN = "-"
    """There are too few samples or commits."""


@dataclass(frozen=True)
class Movement:
    """Trend, verdict and rates of a partition over a window of samples."""

    trend: Trend
    verdict: Verdict
    consumed_per_s: float | None = None
    produced_per_s: float | None = None
    caught_up_in_s: float | None = None
    """Time until the lag is 0 at the current rates; None if it is not decreasing."""
