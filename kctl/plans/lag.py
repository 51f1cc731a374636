"""How far a group is behind, partition by partition, and what to think of it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from broker.model import TopicPartition
from kctl.admin.groups import Group, Member


class Verdict(StrEnum):
    """What one look at a partition tells."""

    OK = "ok"
    LAGGING = "lagging"
    """There is something to read, and a member to read it."""
    UNREAD = "unread"
    """There is something to read, and nobody to read it."""
    NO_OFFSET = "no-offset"
    """Nothing was committed: the member's auto.offset.reset decides."""
    LOST = "lost"
    """Records were deleted before the group had read them."""
    BEYOND = "beyond-end"
    """The group has read what is not there: the topic was made anew, or an election lost data."""
    UNKNOWN = "unknown"
    """The partition's leader did not tell where the log ends."""


@dataclass(frozen=True)
class LogBounds:
    """What the leaders know of the partitions; one that is not in a map is not known."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class PartitionLag:
    """One partition as one group sees it."""

    group_id: str
    place: TopicPartition
    current_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    member: Member | None
    time_lag_ms: int | None = None
    """How long the first record that was not read has been waiting; 0 if there is none."""

    @property
    def lag(self) -> int | None:
        """Records between the committed offset and the end of the log."""
        if self.current_offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.current_offset

    @property
    def verdict(self) -> Verdict:
        """What to think of it; the worst that holds."""
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
        return Verdict.LAGGING if self.member else Verdict.UNREAD


def partition_lags(
    group: Group, committed: Mapping[TopicPartition, int], bounds: LogBounds
) -> list[PartitionLag]:
    """Every partition that the group has committed or that a member was given, in order."""
    readers = {place: member for member in group.members for place in member.assignment}
    return [
        PartitionLag(
            group.group_id,
            place,
            committed.get(place),
            bounds.starts.get(place),
            bounds.ends.get(place),
            readers.get(place),
        )
        for place in sorted(committed.keys() | readers.keys())
    ]


def first_unread(lags: Iterable[PartitionLag]) -> dict[TopicPartition, int]:
    """Where the first unread record of each partition lies, for those that have one."""
    return {
        lag.place: max(lag.current_offset or 0, lag.log_start_offset or 0)
        for lag in lags
        if lag.lag is not None and lag.lag > 0
    }


@dataclass(frozen=True)
class GroupLag:
    """A group with all its partitions."""

    group: Group
    partitions: tuple[PartitionLag, ...]

    @property
    def total_lag(self) -> int:
        """Records, over all partitions whose lag is known."""
        return sum(partition.lag or 0 for partition in self.partitions)

    @property
    def max_lag(self) -> int:
        """Of the partition that is furthest behind."""
        return max((partition.lag or 0 for partition in self.partitions), default=0)

    @property
    def max_time_lag_ms(self) -> int | None:
        """How long the oldest unread record has been waiting; None if that is not known."""
        known = [lag.time_lag_ms for lag in self.partitions if lag.time_lag_ms is not None]
        return max(known, default=None)
