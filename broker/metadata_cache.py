"""What this broker knows of the cluster, for its answers to Metadata and DescribeCluster."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.model import Uuid

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class BrokerEndpoint:
    """A live broker, as clients of one listener reach it."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition, as the controller last told."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic and its partitions, by index."""

    name: str
    topic_id: Uuid
    partitions: tuple[PartitionMetadata, ...]


@dataclass
class MetadataCache:
    """The cluster as the controller last described it. Changed only from the event loop."""

    cluster_id: str
    controller_id: int
    brokers: dict[str, tuple[BrokerEndpoint, ...]] = field(default_factory=dict)
    """Live brokers by listener name: a client sees the addresses of the listener it came by."""
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    names: dict[Uuid, str] = field(default_factory=dict)
    """Topic names by id. Invariant: exactly the topics."""

    def brokers_of(self, listener_name: str) -> tuple[BrokerEndpoint, ...]:
        """The live brokers that have this listener."""
        return self.brokers.get(listener_name, ())

    def live_brokers(self) -> dict[int, str | None]:
        """Every live broker's id and rack."""
        return {b.broker_id: b.rack for listed in self.brokers.values() for b in listed}

    def put(self, topics: Iterable[TopicMetadata]) -> None:
        """Add topics, or replace what was known of them."""
        for topic in topics:
            known = self.topics.get(topic.name)
            if known is not None:
                self.names.pop(known.topic_id, None)
            self.topics[topic.name] = topic
            self.names[topic.topic_id] = topic.name

    def remove(self, names: Iterable[str]) -> None:
        """Forget topics."""
        for name in names:
            topic = self.topics.pop(name, None)
            if topic is not None:
                self.names.pop(topic.topic_id, None)
