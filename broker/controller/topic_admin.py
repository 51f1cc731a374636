"""Creates, grows and deletes topics: by request, and for what others have written into the store.

Kafka's ZkAdminManager, and its controller's handlers of /brokers/topics and /admin/delete_topics.
A request writes what such a tool would write, in the same event in which it is acted upon.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.assignment import Assignment
from broker.config.dynamic import DynamicConfig, EntityType
from broker.config.values import ConfigError
from broker.controller.deletion import TopicDeletion
from broker.controller.election import ElectionStrategy
from broker.controller.partition_machine import PartitionStateMachine
from broker.controller.reassignment import is_reassigned
from broker.controller.replica_machine import ReplicaStateMachine
from broker.controller.term import Term
from broker.controller.topic_plan import (
    BROKER_DEFAULT,
    check_absent,
    check_manual_assignment,
    check_name,
    place_more_partitions,
    place_new_topic,
)
from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import NodeExists
from broker.metadata.store import Create, SetData
from broker.metadata.znodes.admin import DELETE_TOPICS_PATH, delete_topic_path
from broker.metadata.znodes.configs import ConfigEntityZnode
from broker.metadata.znodes.topics import ReplicaAssignment, TopicZnode
from broker.model import TopicPartition, Uuid

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NewTopic:
    """A topic as somebody wants it; -1 leaves a number to the broker."""

    name: str
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    manual_assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class CreatedTopic:
    """A topic as it was made; with validate_only, as it would be."""

    topic_id: Uuid
    assignment: Assignment
    configs: Mapping[str, str]
    """The settings of its own."""
    is_led: bool = True
    """Whether every partition has a leader; one whose replicas are all dead has none."""


class TopicAdmin:
    """The topics of one controller term."""

    def __init__(
        self,
        term: Term,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletion,
    ) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    # By request

    async def create(self, new: NewTopic, *, validate_only: bool) -> CreatedTopic:
        """Create a topic; ApiError says why it cannot be, and then nothing has changed."""
        if self._context.is_being_deleted(new.name):
            raise ApiError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' is marked for deletion."
            )
        check_absent(new.name, self._context.assignments)
        configs = _without_nulls(new.configs)
        assignment = _place(new, self._context.racks(), self._context.assignments, self._configs)
        _check_configs(configs, self._configs)
        if validate_only:
            return CreatedTopic(Uuid.ZERO, assignment, configs)
        topic = TopicZnode(new.name, Uuid.random(), _assigned(assignment))
        await self._write(topic, configs)
        led = await self._begin([topic], first_of=[new.name])
        return CreatedTopic(topic.topic_id or Uuid.ZERO, assignment, configs, all(led.values()))

    @property
    def _configs(self) -> DynamicConfig:
        return self._term.configs

    async def _write(self, topic: TopicZnode, configs: Mapping[str, str]) -> None:
        config_path = ConfigEntityZnode.path(EntityType.TOPIC, topic.topic)
        # A topic of this name may have left settings behind: they are not the new one's.
        await self._term.store.set_or_create(config_path, ConfigEntityZnode.encode(configs))
        try:
            await self._term.store.write([Create(TopicZnode.path(topic.topic), topic.encode())])
        except NodeExists as error:
            raise ApiError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.topic}' already exists."
            ) from error

    async def grow(
        self,
        name: str,
        count: int,
        manual: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool,
    ) -> None:
        """Let the topic have `count` partitions."""
        known = self._known(name)
        if any(is_reassigned(assigned) for assigned in known.values()):
            raise ApiError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{name}'.",
            )
        current = [assigned.replicas for assigned in known.values()]
        placed = place_more_partitions(self._context.racks(), current, count, manual)
        if validate_only:
            return
        added = _assigned(placed, first_partition=len(current))
        topic = TopicZnode(name, self._context.topic_ids.get(name), {**known, **added})
        await self._term.store.write([SetData(TopicZnode.path(name), topic.encode())])
        await self._begin([TopicZnode(name, topic.topic_id, added)])

    def _known(self, name: str) -> Mapping[int, ReplicaAssignment]:
        known = self._context.assignments.get(name)
        if known is None or self._context.is_being_deleted(name):
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        return known

    async def delete(self, name: str) -> asyncio.Future[None]:
        """Begin to delete a topic; gives what is done when it is gone, or has to wait."""
        self._known(name)
        await self._term.store.write([Create(delete_topic_path(name))])
        await self._deletion.enqueue([name])
        return self._deletion.when_settled(name)

    # By what others have written

    async def changed(self) -> None:
        """Look for topics that were made, or removed, in the store."""
        names = set(await self._term.store.topic_names())
        for gone in self._context.assignments.keys() - names:
            self._context.remove_topic(gone)
        new = await self._term.store.topics(sorted(names - self._context.assignments.keys()))
        if new:
            found = await self.with_ids(new)
            await self._begin(found)

    async def with_ids(self, topics: Iterable[TopicZnode]) -> list[TopicZnode]:
        """The topics, where those that had no id have been given one (KIP-516)."""
        found = []
        for topic in topics:
            if topic.topic_id is None:
                topic = TopicZnode(topic.topic, Uuid.random(), topic.assignment)
                await self._term.store.set_topic(topic)
            found.append(topic)
        return found

    async def partitions_changed(self, name: str) -> None:
        """Look for partitions that were added to a topic in the store."""
        known = self._context.assignments.get(name)
        read = await self._term.store.topics([name])
        if known is None or not read:
            return
        (topic,) = read
        added = {i: replicas for i, replicas in topic.assignment.items() if i not in known}
        if not added:
            return
        if self._context.is_being_deleted(name):
            logger.warning("no partitions are added to a topic that is deleted topic=%s", name)
            await self._term.store.set_topic(TopicZnode(name, topic.topic_id, known))
        else:
            await self._begin([TopicZnode(name, topic.topic_id, added)])

    async def deletions_changed(self) -> None:
        """Look for topics that somebody wants deleted."""
        wanted = set(await self._term.store.children(DELETE_TOPICS_PATH))
        unknown = wanted - self._context.assignments.keys()
        if unknown:
            logger.warning("there are no such topics to delete topics=%s", sorted(unknown))
            await self._deletion.forget(unknown)
        wanted -= unknown
        if not self._configs.broker.delete_topic_enable:
            logger.info("deletion is disabled topics=%s", sorted(wanted))
            await self._deletion.forget(wanted)
        elif new := wanted - self._context.topics_to_delete:
            await self._deletion.enqueue(new)

    # Both

    async def _begin(
        self, topics: Iterable[TopicZnode], first_of: Iterable[str] = ()
    ) -> dict[TopicPartition, bool]:
        """Know new partitions and let them be led; gives which of them are."""
        names = []
        for topic in topics:
            self._context.add_topic(topic.topic, topic.topic_id)
            for index, assigned in topic.assignment.items():
                names.append(TopicPartition(topic.topic, index))
                self._context.assign(names[-1], assigned)
        self._partitions.create(names)
        self._replicas.create(self._context.replicas_of(names))
        led = await self._partitions.bring_online(names, ElectionStrategy.OFFLINE, first_of)
        self._replicas.start_online(self._context.replicas_of(names))
        return led


def _assigned(assignment: Assignment, first_partition: int = 0) -> dict[int, ReplicaAssignment]:
    return {i: ReplicaAssignment(r) for i, r in enumerate(assignment, first_partition)}


def _place(
    new: NewTopic,
    brokers: Mapping[int, str | None],
    existing: Mapping[str, object],
    configs: DynamicConfig,
) -> Assignment:
    """The replicas; and the name is checked, which Kafka does after counting, before manual."""
    is_counted = (new.num_partitions, new.replication_factor) != (-1, -1)
    if new.manual_assignment:
        if is_counted:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )
        check_name(new.name, existing)
        return check_manual_assignment(new.manual_assignment)
    partitions, replicas = new.num_partitions, new.replication_factor
    config = configs.broker
    placed = place_new_topic(
        brokers,
        config.num_partitions if partitions == BROKER_DEFAULT else partitions,
        config.default_replication_factor if replicas == BROKER_DEFAULT else replicas,
    )
    check_name(new.name, existing)
    return placed


def _check_configs(own: Mapping[str, str], configs: DynamicConfig) -> None:
    try:
        configs.validate_topic(own)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _without_nulls(configs: Mapping[str, str | None]) -> dict[str, str]:
    nulls = [key for key, value in configs.items() if value is None]
    if nulls:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    return {key: value for key, value in configs.items() if value is not None}
