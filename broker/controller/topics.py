"""Creates, grows and deletes topics, and tells the broker what it leads: a cluster of one.

One change at a time: a lock is the event queue. Each is written to the store first, in one
transaction; then the logs are made and led; then clients see it. A crash in between is mended at
the next start, which makes what the store says.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broker.assignment import Assignment
from broker.config import BrokerConfig
from broker.controller.topic_plan import (
    BROKER_DEFAULT,
    check_manual_assignment,
    check_new_name,
    place_more_partitions,
    place_new_topic,
)
from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import MetadataCache, PartitionMetadata, TopicMetadata
from broker.model import LeaderAndIsr, TopicPartition, Uuid


@dataclass(frozen=True)
class NewTopic:
    """A topic as somebody wants it; -1 leaves a number to the broker."""

    name: str
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    manual_assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CreatedTopic:
    """A topic as it was made; with validate_only, as it would be."""

    topic_id: Uuid
    assignment: Assignment


class LocalBroker(Protocol):
    """The one broker that is told what to lead; the replica manager is it."""

    async def become(
        self, topic_id: Uuid, states: Mapping[TopicPartition, LeaderAndIsr], *, is_new: bool
    ) -> None:
        """Lead or follow partitions."""
        ...

    async def stop(self, names: Iterable[TopicPartition], *, delete: bool) -> None:
        """Forget partitions, with their files if `delete`."""
        ...


class TopicController:
    """The topics of a cluster of one broker, which leads all partitions."""

    def __init__(self, config: BrokerConfig, metadata: MetadataCache, broker: LocalBroker) -> None:
        self._config = config
        self._metadata = metadata
        self._broker = broker
        self._one_at_a_time = asyncio.Lock()

    async def create_topic(self, new: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create a topic; ApiError says why it cannot be, and then nothing has changed."""
        async with self._one_at_a_time:
            check_new_name(new.name, self._metadata.topics)
            assignment = self._place(new)
            if validate_only:
                return CreatedTopic(Uuid.ZERO, assignment)
            topic_id = Uuid.random()
            await self._lead(new.name, topic_id, assignment, first_partition=0)
            return CreatedTopic(topic_id, assignment)

    async def auto_create(self, name: str) -> None:
        """Create a topic that a client asked for, unless somebody else did meanwhile."""
        try:
            await self.create_topic(NewTopic(name))
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def create_partitions(
        self,
        name: str,
        count: int,
        manual: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Let the topic have `count` partitions."""
        async with self._one_at_a_time:
            topic = self._known(name)
            current = [partition.replicas for partition in topic.partitions]
            brokers = self._metadata.live_brokers()
            added = place_more_partitions(brokers, current, count, manual)
            if not validate_only:
                await self._lead(name, topic.topic_id, added, first_partition=len(current))

    async def delete_topic(self, name: str) -> None:
        """Take the topic away; its files go after `file.delete.delay.ms`."""
        async with self._one_at_a_time:
            topic = self._known(name)
            self._metadata.remove([name])
            names = [TopicPartition(name, index) for index in range(len(topic.partitions))]
            await self._broker.stop(names, delete=True)

    def _known(self, name: str) -> TopicMetadata:
        topic = self._metadata.topics.get(name)
        if topic is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        return topic

    def _place(self, new: NewTopic) -> Assignment:
        is_counted = (new.num_partitions, new.replication_factor) != (-1, -1)
        if new.manual_assignment:
            if is_counted:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "Both numPartitions or replicationFactor and replicasAssignments were set. "
                    "Both cannot be used at the same time.",
                )
            return check_manual_assignment(new.manual_assignment)
        partitions, replicas = new.num_partitions, new.replication_factor
        return place_new_topic(
            self._metadata.live_brokers(),
            self._config.num_partitions if partitions == BROKER_DEFAULT else partitions,
            self._config.default_replication_factor if replicas == BROKER_DEFAULT else replicas,
        )

    async def _lead(
        self, name: str, topic_id: Uuid, assignment: Assignment, first_partition: int
    ) -> None:
        """Make the logs and lead the partitions, then show them to clients."""
        states = {
            TopicPartition(name, first_partition + n): LeaderAndIsr(
                replicas[0], 0, tuple(replicas), tuple(replicas)
            )
            for n, replicas in enumerate(assignment)
        }
        await self._broker.become(topic_id, states, is_new=True)
        known = self._metadata.topics.get(name)
        added = tuple(
            PartitionMetadata(s.leader, s.leader_epoch, s.replicas, s.isr) for s in states.values()
        )
        partitions = (known.partitions if known else ()) + added
        self._metadata.put([TopicMetadata(name, topic_id, partitions)])
