"""Kafka's ControllerContext: the active controller's memory of the cluster.

Read from the store when the controller is elected, and updated by its events afterwards, after the
store was written. Only events change it, one at a time; nothing here waits, reads or writes.
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
    """A registered broker, and the epoch of its registration."""

    registration: BrokerIdZnode
    broker_epoch: int


@dataclass
class ControllerContext:
    """Brokers, topics, replicas, leaders, and the operations in progress."""

    brokers: dict[int, LiveBroker] = field(default_factory=dict)
    """The registered brokers, including those that are shutting down."""
    shutting_down: set[int] = field(default_factory=set)
    """Brokers that have requested a controlled shutdown. Invariant: a subset of `brokers`."""
    assignments: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    """Replicas by topic and partition. Invariant: contains every topic of the store."""
    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    """Topic ids by name. Invariant: complete when the controller has started (KIP-516)."""
    topic_names: dict[Uuid, str] = field(default_factory=dict)
    """Topic names by id. Invariant: the inverse of `topic_ids`."""
    leaderships: dict[TopicPartition, Leadership] = field(default_factory=dict)
    """Leader and ISR by partition; Kafka's partitionLeadershipInfo. Invariant: as in the store,
    unless an older broker has written it since. Partitions in state NEW are missing."""
    partition_states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    """Changed only by PartitionStateMachine. Invariant: never NON_EXISTENT."""
    replica_states: dict[Replica, ReplicaState] = field(default_factory=dict)
    """Changed only by ReplicaStateMachine. Invariant: never NON_EXISTENT."""
    reassigning: set[TopicPartition] = field(default_factory=set)
    """Partitions that are being reassigned."""
    offline_dirs: dict[int, set[TopicPartition]] = field(default_factory=dict)
    """By broker, the partitions in its failed log directories."""
    topics_to_delete: set[str] = field(default_factory=set)
    """Topics that are being deleted. Invariant: a subset of `assignments`."""
    num_elections: int = 0
    """Partitions for which a leader was elected, since this broker became the controller."""
    num_unclean_elections: int = 0
    """Of these, elections of a leader from outside of the ISR."""
    ineligible_topics: set[str] = field(default_factory=set)
    """Topics whose deletion waits for a broker or a reassignment. Invariant: a subset of
    `topics_to_delete`."""
    topics_with_deletion_started: set[str] = field(default_factory=set)
    """Topics whose partitions have been removed already. Invariant: a subset of
    `topics_to_delete`."""

    # Brokers

    @property
    def live_broker_ids(self) -> set[int]:
        """The brokers that are alive and not shutting down."""
        return self.brokers.keys() - self.shutting_down

    def racks(self) -> dict[int, str | None]:
        """The racks of the live brokers, for the assignment of replicas."""
        return {id_: self.brokers[id_].registration.rack for id_ in self.live_broker_ids}

    def is_registered(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a broker's present registration is the one of this epoch."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.broker_epoch == broker_epoch

    def is_online(
        self, broker_id: int, partition: TopicPartition, *, or_shutting_down: bool = False
    ) -> bool:
        """Whether a broker is alive and the log directory of its replica is online."""
        is_alive = broker_id in self.brokers and (
            or_shutting_down or broker_id not in self.shutting_down
        )
        return is_alive and partition not in self.offline_dirs.get(broker_id, ())

    # Topics

    def add_topic(self, topic: str, topic_id: Uuid | None) -> None:
        """Add a topic without partitions, and its id."""
        self.assignments.setdefault(topic, {})
        if topic_id is not None:
            self.topic_ids[topic] = topic_id
            self.topic_names[topic_id] = topic

    def remove_topic(self, topic: str) -> None:
        """Remove everything about a topic."""
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
        """The partition's replicas; empty if it does not exist."""
        found = self.assignments.get(partition.topic, {}).get(partition.partition)
        return found or ReplicaAssignment(())

    def assign(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Set the replicas of a partition of a known topic."""
        self.assignments[partition.topic][partition.partition] = assignment

    def is_being_deleted(self, topic: str) -> bool:
        """Whether the topic is queued for deletion."""
        return topic in self.topics_to_delete

    def stop_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch of a StopReplica for the partition; a deletion overrides all epochs."""
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
        """Every replica on these brokers."""
        return [
            Replica(TopicPartition(topic, index), broker_id)
            for topic, assigned in self.assignments.items()
            for index, assignment in assigned.items()
            for broker_id in assignment.replicas
            if broker_id in broker_ids
        ]

    def state_of(self, replica: Replica) -> ReplicaState:
        """The replica's state; NON_EXISTENT if it is unknown."""
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def replicas_in(self, topic: str, state: ReplicaState) -> list[Replica]:
        """The replicas of a topic in this state."""
        return [r for r in self.replicas_of_topic(topic) if self.state_of(r) is state]

    def partitions_in(self, *states: PartitionState) -> list[TopicPartition]:
        """The partitions in these states, except those of topics that are being deleted."""
        return [
            partition
            for partition, state in self.partition_states.items()
            if state in states and not self.is_being_deleted(partition.topic)
        ]
