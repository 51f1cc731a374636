"""Traffic per topic, as in Kafka's BrokerTopicStats."""

from operator import attrgetter
from typing import Final


class TopicStats:
    """Counters of one topic since the broker started; never decreasing."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_message_conversions",
        "fetch_requests",
        "messages_in",
        "produce_message_conversions",
        "produce_requests",
        "reassignment_bytes_in",
        "reassignment_bytes_out",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        """Bytes of batches that this broker appended as the leader."""
        self.messages_in = 0
        self.bytes_out = 0
        """Bytes sent to consumers."""
        self.replication_bytes_in = 0
        """Bytes appended as a follower."""
        self.replication_bytes_out = 0
        """Bytes sent to followers."""
        self.produce_requests = 0
        """Partitions of produce requests, as Kafka counts them."""
        self.fetch_requests = 0
        """Partitions of fetch requests, as Kafka counts them."""
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.bytes_rejected = 0
        """Bytes of batches that exceeded max.message.bytes."""
        self.produce_message_conversions = 0
        """Records of old formats that were converted when they were appended."""
        self.fetch_message_conversions = 0
        """Records that were converted for consumers of old versions."""
        self.reassignment_bytes_in = 0
        """Bytes appended by a replica that a reassignment adds."""
        self.reassignment_bytes_out = 0
        """Bytes sent to replicas that a reassignment adds."""

    def add(self, other: "TopicStats") -> None:
        """Add the counters of another topic."""
        for name in COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COUNTERS: Final = TopicStats.__slots__


class BrokerTopicStats:
    """The counters of every topic, and of all topics together."""

    def __init__(self) -> None:
        self._by_topic: dict[str, TopicStats] = {}
        self._deleted = TopicStats()
        """The sum of topics that were deleted: totals must not decrease."""

    def of(self, topic: str) -> TopicStats:
        """The counters of a topic."""
        stats = self._by_topic.get(topic)
        if stats is None:
            stats = self._by_topic[topic] = TopicStats()
        return stats

    def by_topic(self) -> dict[str, TopicStats]:
        """A copy of the table, for other threads."""
        return self._by_topic.copy()

    def remove(self, topic: str) -> None:
        """Forget a topic that has no partition here any more; its traffic stays in the total."""
        stats = self._by_topic.pop(topic, None)
        if stats is not None:
            self._deleted.add(stats)

    def total(self) -> TopicStats:
        """The sum over all topics, including deleted ones."""
        total = TopicStats()
        every = [self._deleted, *self.by_topic().values()]
        for name in COUNTERS:  # not with `add`, which takes ten times as long
            setattr(total, name, sum(map(attrgetter(name), every)))
        return total
