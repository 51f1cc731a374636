"""What this broker knows of the cluster, for its answers to Metadata and DescribeCluster.

The controller tells it, with UpdateMetadata: all live brokers each time, and the partitions that
have changed. One request is taken up as a whole; nobody sees half of it.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from broker.model import TopicPartition, Uuid
from broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

NO_LEADER: Final = -1
_LEADER_DURING_DELETE: Final = -2
"""The leader of a partition that is being deleted: it is to be forgotten."""


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


_NOT_TOLD: Final = PartitionMetadata(NO_LEADER, -1, (), ())
"""A partition of which only later ones are known, for a moment."""


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
    controller_id: int = -1
    brokers: dict[str, tuple[BrokerEndpoint, ...]] = field(default_factory=dict)
    """Live brokers by listener name: a client sees the addresses of the listener it came by."""
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    names: dict[Uuid, str] = field(default_factory=dict)
    """Topic names by id. Invariant: exactly the topics."""
    told: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the controller has described the cluster for the first time."""

    def brokers_of(self, listener_name: str) -> tuple[BrokerEndpoint, ...]:
        """The live brokers that have this listener."""
        return self.brokers.get(listener_name, ())

    def endpoint(self, broker_id: int, listener_name: str) -> BrokerEndpoint | None:
        """Where a live broker is reached; None if it is not alive or lacks the listener."""
        found = (b for b in self.brokers_of(listener_name) if b.broker_id == broker_id)
        return next(found, None)

    def ids_of(self, listener_name: str) -> frozenset[int]:
        """The ids of the live brokers that have this listener."""
        return frozenset(broker.broker_id for broker in self.brokers_of(listener_name))

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is in the cluster."""
        return any(b.broker_id == broker_id for listed in self.brokers.values() for b in listed)

    def has_partition(self, topic: str, index: int) -> bool:
        """Whether the cluster has such a partition."""
        known = self.topics.get(topic)
        return known is not None and 0 <= index < len(known.partitions)

    def update(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """Take up what the controller tells; gives the partitions that were deleted."""
        self.controller_id = request.controller_id
        self.brokers = _by_listener(request.live_brokers)
        deleted: list[TopicPartition] = []
        for topic in _by_topic(request):
            deleted += self._update_topic(topic)
        self.told.set()
        return deleted

    def _update_topic(self, topic: UpdateMetadataTopicState) -> list[TopicPartition]:
        known = self.topics.get(topic.topic_name)
        partitions = list(known.partitions) if known else []
        deleted = []
        for state in topic.partition_states:
            if state.leader == _LEADER_DURING_DELETE:
                deleted.append(TopicPartition(topic.topic_name, state.partition_index))
                continue
            missing = state.partition_index + 1 - len(partitions)
            partitions += [_NOT_TOLD] * missing
            partitions[state.partition_index] = _partition(state)
        if deleted:
            self.remove([topic.topic_name])
        else:
            topic_id = topic.topic_id
            if topic_id == Uuid.ZERO and known is not None:
                topic_id = known.topic_id
            self.put([TopicMetadata(topic.topic_name, topic_id, tuple(partitions))])
        return deleted

    def put(self, topics: Iterable[TopicMetadata]) -> None:
        """Add topics, or replace what was known of them."""
        for topic in topics:
            known = self.topics.get(topic.name)
            if known is not None:
                self.names.pop(known.topic_id, None)
            self.topics[topic.name] = topic
            if topic.topic_id != Uuid.ZERO:
                self.names[topic.topic_id] = topic.name

    def remove(self, names: Iterable[str]) -> None:
        """Forget topics."""
        for name in names:
            topic = self.topics.pop(name, None)
            if topic is not None:
                self.names.pop(topic.topic_id, None)


def _by_topic(request: UpdateMetadataRequest) -> Iterable[UpdateMetadataTopicState]:
    """The states by topic; up to version 4 each of them names its topic itself."""
    if not request.ungrouped_partition_states:
        return request.topic_states
    topics: dict[str, UpdateMetadataTopicState] = {}
    for state in request.ungrouped_partition_states:
        topic = topics.setdefault(
            state.topic_name, UpdateMetadataTopicState(topic_name=state.topic_name)
        )
        topic.partition_states.append(state)
    return topics.values()


def _partition(state: UpdateMetadataPartitionState) -> PartitionMetadata:
    return PartitionMetadata(
        state.leader,
        state.leader_epoch,
        tuple(state.replicas),
        tuple(state.isr),
        tuple(state.offline_replicas),
    )


def _by_listener(
    brokers: Iterable[UpdateMetadataBroker],
) -> dict[str, tuple[BrokerEndpoint, ...]]:
    listeners: dict[str, list[BrokerEndpoint]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.id):
        for endpoint in broker.endpoints:
            known = BrokerEndpoint(broker.id, endpoint.host, endpoint.port, broker.rack)
            name = endpoint.listener or _PROTOCOLS.get(endpoint.security_protocol, "PLAINTEXT")
            listeners.setdefault(name, []).append(known)
    return {name: tuple(found) for name, found in listeners.items()}


_PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
"""Names of listeners in versions that have no name for them: those of their security protocols."""
