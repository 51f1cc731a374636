"""What the active controller knows of the cluster: read from the store once, then kept up to date.

Changed only by events of the controller's queue, one at a time; nothing here waits or writes.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.controller.leadership import EPOCH_DURING_DELETE, Leadership
from broker.controller.states import PartitionState, ReplicaState
from broker.metadata.znodes.brokers import BrokerIdZnode
from broker.metadata.znodes.topics import ReplicaAssignment
from broker.model import TopicPartition, Uuid

NO_EPOCH = -1


class Replica(NamedTuple):
    """One replica of a partition."""

    partition: TopicPartition
    broker_id: int


class LiveBroker(NamedTuple):
    """A registered broker, and the epoch of that registration."""

    registration: BrokerIdZnode
    broker_epoch: int


@dataclass
class ControllerContext:
    """Brokers, topics, replicas, leaders, and what is under way."""

    brokers: dict[int, LiveBroker] = field(default_factory=dict)
    """Registered ones: alive, or about to shut down."""
    shutting_down: set[int] = field(default_factory=set)
    """Brokers that have announced it. Invariant: all of them are in `brokers`."""
    assignments: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    """Replicas by topic and partition. Invariant: its keys are all the topics there are."""
    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    topic_names: dict[Uuid, str] = field(default_factory=dict)
    """Invariant: `topic_ids` the other way round."""
    leaderships: dict[TopicPartition, Leadership] = field(default_factory=dict)
    """Of the partitions that have been led; new ones are not here."""
    partition_states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: dict[Replica, ReplicaState] = field(default_factory=dict)
    reassigning: set[TopicPartition] = field(default_factory=set)
    """Partitions whose replicas are being changed."""
    offline_dirs: dict[int, set[TopicPartition]] = field(default_factory=dict)
    """By broker, the partitions whose log directory has failed there."""
    topics_to_delete: set[str] = field(default_factory=set)
    """Topics that shall go; they leave this set when nothing is left of them."""
    ineligible_topics: set[str] = field(default_factory=set)
    """Of those, the ones whose deletion waits for a broker or a reassignment."""
    topics_with_deletion_started: set[str] = field(default_factory=set)

    # Brokers

    @property
    def live_broker_ids(self) -> set[int]:
        """Those that are not about to shut down."""
        return self.brokers.keys() - self.shutting_down

    def racks(self) -> dict[int, str | None]:
        """The live brokers' racks, for placing replicas."""
        return {id_: self.brokers[id_].registration.rack for id_ in self.live_broker_ids}

    def is_online(
        self, broker_id: int, partition: TopicPartition, *, or_shutting_down: bool = False
    ) -> bool:
        """Whether a broker can serve its replica: it is alive, and so is the log directory."""
        is_alive = broker_id in self.brokers and (
            or_shutting_down or broker_id not in self.shutting_down
        )
        return is_alive and partition not in self.offline_dirs.get(broker_id, ())

    # Topics

    def add_topic(self, topic: str, topic_id: Uuid | None) -> None:
        """Know a topic, with no partitions yet, and its id."""
        self.assignments.setdefault(topic, {})
        if topic_id is not None:
            self.topic_ids[topic] = topic_id
            self.topic_names[topic_id] = topic

    def remove_topic(self, topic: str) -> None:
        """Forget everything about a topic."""
        for replica in self.replicas_of_topic(topic):
            self.replica_states.pop(replica, None)
        for partition in self.partitions_of(topic):
            self.partition_states.pop(partition, None)
            self.leaderships.pop(partition, None)
            self.reassigning.discard(partition)
        self.assignments.pop(topic, None)
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)
        for topics in (
            self.topics_to_delete,
            self.ineligible_topics,
            self.topics_with_deletion_started,
        ):
            topics.discard(topic)

    def partitions(self) -> Iterator[TopicPartition]:
        """Every partition of every topic."""
        for topic, assigned in self.assignments.items():
            for index in assigned:
                yield TopicPartition(topic, index)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """The partitions of one topic."""
        return [TopicPartition(topic, index) for index in self.assignments.get(topic, ())]

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The partition's replicas; none for one that does not exist."""
        found = self.assignments.get(partition.topic, {}).get(partition.partition)
        return found or ReplicaAssignment(())

    def assign(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Give a partition of a known topic its replicas."""
        self.assignments[partition.topic][partition.partition] = assignment

    def is_being_deleted(self, topic: str) -> bool:
        """Whether somebody wants the topic gone."""
        return topic in self.topics_to_delete

    def stop_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch that goes with stopping a replica; a deletion overrides all epochs."""
        if self.is_being_deleted(partition.topic):
            return EPOCH_DURING_DELETE
        known = self.leaderships.get(partition)
        return NO_EPOCH if known is None else known.leader_epoch

    # Replicas

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        """Every replica of these partitions."""
        return [
            Replica(partition, broker_id)
            for partition in partitions
            for broker_id in self.assignment(partition).replicas
        ]

    def replicas_of_topic(self, topic: str) -> list[Replica]:
        """Every replica of a topic."""
        return self.replicas_of(self.partitions_of(topic))

    def replicas_on(self, broker_ids: Collection[int]) -> list[Replica]:
        """Every replica that one of these brokers has."""
        return [
            Replica(TopicPartition(topic, index), broker_id)
            for topic, assigned in self.assignments.items()
            for index, assignment in assigned.items()
            for broker_id in assignment.replicas
            if broker_id in broker_ids
        ]

    def state_of(self, replica: Replica) -> ReplicaState:
        """The replica's state; one that nobody has heard of does not exist."""
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def replicas_in(self, topic: str, state: ReplicaState) -> list[Replica]:
        """The replicas of a topic that are in this state."""
        return [r for r in self.replicas_of_topic(topic) if self.state_of(r) is state]

    def partitions_in(self, *states: PartitionState) -> list[TopicPartition]:
        """The partitions in one of these states, save those of topics that are being deleted."""
        return [
            partition
            for partition, state in self.partition_states.items()
            if state in states and not self.is_being_deleted(partition.topic)
        ]
