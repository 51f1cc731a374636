"""Consumer lag by partition."""

from collections.abc import Iterable, Mapping

from broker.model import TopicPartition
from kctl.model.groups import Group
from kctl.model.lag import GroupLag, LogBounds, PartitionLag, TopicLag


def partition_lags(
    group: Group,
    committed: Mapping[TopicPartition, int],
    bounds: LogBounds,
    unread: Iterable[TopicPartition] = (),
) -> list[PartitionLag]:
    """The lag of every partition that is committed, assigned or in `unread`, sorted."""
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
        for place in sorted(committed.keys() | readers.keys() | set(unread))
    ]


def first_unread(lags: Iterable[PartitionLag]) -> dict[TopicPartition, int]:
    """Offsets of the first unread records, for partitions that have one."""
    return {
        lag.place: max(lag.current_offset or 0, lag.log_start_offset or 0)
        for lag in lags
        if lag.lag is not None and lag.lag > 0
    }


def by_topic(group: GroupLag) -> list[TopicLag]:
    """The lag of a group on each of its topics, sorted by name."""
    topics: dict[str, list[PartitionLag]] = {}
    for lag in group.partitions:
        topics.setdefault(lag.place.topic, []).append(lag)
    name = group.group.group_id
    return [TopicLag(name, topic, tuple(lags)) for topic, lags in sorted(topics.items())]
