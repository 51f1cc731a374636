"""Creation and deletion of topics and partitions: by request, and by changes of the store.

Kafka's ZkAdminManager, and the controller's handlers of /brokers/topics and /admin/delete_topics.
A request writes the same nodes that a tool would write into the store, and acts on them in the same
event; the watches that fire because of its own writes find nothing left to do.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from broker.assignment import Assignment
from broker.config.dynamic import DynamicConfig, EntityType
from broker.config.values import ConfigError
from broker.controller.controller_services import ControllerServices
from broker.controller.partition_leader_election import ElectionStrategy
from broker.controller.partition_state_machine import PartitionStateMachine
from broker.controller.replica_assignment import is_reassigned
from broker.controller.replica_state_machine import ReplicaStateMachine
from broker.controller.topic_deletion_manager import TopicDeletionManager
from broker.controller.topic_plan import (
    BROKER_DEFAULT,
    check_absent,
    check_manual_assignment,
    check_name,
    check_partition_count,
    place_more_partitions,
    place_new_topic,
)
from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import NodeExists, NoNode
from broker.metadata.recursive import batches
from broker.metadata.store import Create, Operation, SetData
from broker.metadata.znodes.admin import DELETE_TOPICS_PATH, delete_topic_path
from broker.metadata.znodes.configs import ConfigEntityZnode
from broker.metadata.znodes.topics import TOPICS_PATH, ReplicaAssignment, TopicZnode
from broker.model import TopicPartition, Uuid

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NewTopic:
    """A topic to create; a number of -1 means the broker's default."""

    name: str
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    manual_assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class CreatedTopic:
    """A topic that was created, or that would be created."""

    topic_id: Uuid
    """Uuid.ZERO if it was only validated."""
    assignment: Assignment
    configs: Mapping[str, str]
    """The topic's own configs, without defaults."""
    is_led: bool = True
    """Whether every partition has a leader; false if all replicas of one are dead."""


class TopicAdmin:
    """Creates and deletes topics, in one controller epoch."""

    def __init__(
        self,
        services: ControllerServices,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletionManager,
    ) -> None:
        self._services = services
        self._context = services.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    # Requests

    async def create(self, topics: Sequence[NewTopic]) -> list[CreatedTopic | ApiError]:
        """Create topics together; a failure concerns only its topic, and leaves nothing of it.

        They share transactions of the store and requests to the brokers: on one broker, 1,000
        topics take 0.1 of the time that they take one by one.
        """
        planned: dict[str, tuple[TopicZnode, CreatedTopic]] = {}
        failures: dict[str, ApiError] = {}
        existing = dict.fromkeys(self._context.assignments)
        for new in topics:
            try:
                plan = self._plan(new, existing)
            except ApiError as error:
                failures[new.name] = error
                continue
            existing[new.name] = None
            znode = TopicZnode(new.name, Uuid.random(), _assigned(plan.assignment))
            planned[new.name] = znode, plan
        for name in await self._write(planned):
            failures[name] = _already_exists(name)
            del planned[name]
        led = await self._begin([znode for znode, _ in planned.values()], first_of=list(planned))
        without_leader = {partition.topic for partition, is_led in led.items() if not is_led}
        created = {
            name: replace(
                plan,
                topic_id=znode.topic_id or Uuid.ZERO,
                is_led=name not in without_leader,
            )
            for name, (znode, plan) in planned.items()
        }
        return [created.get(new.name) or failures[new.name] for new in topics]

    def validate(self, new: NewTopic) -> CreatedTopic:
        """The topic as `create` would create it; ApiError if it would fail."""
        return self._plan(new, self._context.assignments)

    def _plan(self, new: NewTopic, existing: Collection[str]) -> CreatedTopic:
        if self._context.is_being_deleted(new.name):
            raise ApiError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' is marked for deletion."
            )
        check_absent(new.name, existing)
        configs = _without_nulls(new.configs)
        assignment = _place(new, self._context.racks(), existing, self._configs)
        _check_configs(configs, self._configs)
        return CreatedTopic(Uuid.ZERO, assignment, configs)

    @property
    def _configs(self) -> DynamicConfig:
        return self._services.configs

    async def _write(self, topics: Mapping[str, tuple[TopicZnode, CreatedTopic]]) -> list[str]:
        """Write topics and their configs; returns the topics that the store has already."""
        # Configs before the topic: brokers read them when they first hear of it. A controller that
        # stops in between leaves configs without a topic, which the next creation overwrites.
        # Configs that an earlier topic of this name has left behind must not apply to the new one.
        paths = {name: ConfigEntityZnode.path(EntityType.TOPIC, name) for name in topics}
        left_behind = await self._services.store.get_all(paths)
        operations: list[Operation] = []
        for name, (znode, plan) in topics.items():
            data = ConfigEntityZnode.encode(plan.configs)
            has_configs = name in left_behind
            operations.append(
                SetData(paths[name], data) if has_configs else Create(paths[name], data)
            )
            operations.append(Create(TopicZnode.path(name), znode.encode()))
        refused: set[str] = set()
        for batch in batches(operations):
            try:
                await self._services.store.write(batch)
            except (NodeExists, NoNode):  # nothing of the batch was written
                refused |= await self._write_one_by_one(batch)
        return [name for name in topics if TopicZnode.path(name) in refused]

    async def _write_one_by_one(self, batch: Iterable[Operation]) -> set[str]:
        """The paths of topics that exist; configs are written whether their node exists or not."""
        refused = set()
        for operation in batch:
            try:
                await self._services.store.write([operation])
            except (NodeExists, NoNode):
                if operation.path.startswith(f"{TOPICS_PATH}/"):
                    refused.add(operation.path)
                elif isinstance(operation, Create | SetData):
                    await self._services.store.set_or_create(operation.path, operation.data or b"")
        return refused

    async def create_partitions(
        self,
        name: str,
        count: int,
        manual: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool,
    ) -> None:
        """Raise the number of a topic's partitions to `count`."""
        known = self._known(name)
        if any(is_reassigned(assigned) for assigned in known.values()):
            raise ApiError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{name}'.",
            )
        current = [assigned.replicas for assigned in known.values()]
        limit = self._configs.broker.max_partitions_per_request
        placed = place_more_partitions(self._context.racks(), current, count, manual, limit)
        if validate_only:
            return
        added = _assigned(placed, first_partition=len(current))
        topic = TopicZnode(name, self._context.topic_ids.get(name), {**known, **added})
        await self._services.store.write([SetData(TopicZnode.path(name), topic.encode())])
        await self._begin([TopicZnode(name, topic.topic_id, added)])

    def _known(self, name: str) -> Mapping[int, ReplicaAssignment]:
        known = self._context.assignments.get(name)
        if known is None or self._context.is_being_deleted(name):
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        return known

    async def delete(self, name: str) -> asyncio.Future[None]:
        """Start to delete a topic; the future is done when it is gone, or when it must wait."""
        self._known(name)
        # The request is there already if a tool wrote it, or if the connection broke after our
        # write had been applied: this one waits for the same deletion.
        with contextlib.suppress(NodeExists):
            await self._services.store.write([Create(delete_topic_path(name))])
        await self._deletion.enqueue_topics_for_deletion([name])
        return self._deletion.when_settled(name)

    # Changes of the store

    async def process_topic_change(self) -> None:
        """Process topics that were added to the store, or removed from it."""
        names = set(await self._services.store.topic_names())
        # A topic that vanished without a deletion was removed by hand: its replicas are left alone.
        for gone in self._context.assignments.keys() - names:
            self._context.remove_topic(gone)
        new = await self._services.store.topics(sorted(names - self._context.assignments.keys()))
        if new:
            found = await self.with_ids(new)
            await self._partitions.initialize_new(self._register(found))

    async def with_ids(self, topics: Iterable[TopicZnode]) -> list[TopicZnode]:
        """The topics, with an id written for those that had none (KIP-516)."""
        found = []
        for topic in topics:
            if topic.topic_id is None:
                topic = TopicZnode(topic.topic, Uuid.random(), topic.assignment)
                await self._services.store.set_topic(topic)
            found.append(topic)
        return found

    async def process_partition_modifications(self, name: str) -> None:
        """Process partitions that were added to a topic in the store."""
        known = self._context.assignments.get(name)
        read = await self._services.store.topics([name])
        if known is None or not read:
            return
        (topic,) = read
        added = {i: replicas for i, replicas in topic.assignment.items() if i not in known}
        if not added:
            return
        if self._context.is_being_deleted(name):
            logger.warning("Ignoring new partitions of a topic being deleted topic=%s", name)
            await self._services.store.set_topic(TopicZnode(name, topic.topic_id, known))
        else:
            new = self._register([TopicZnode(name, topic.topic_id, added)])
            await self._partitions.initialize_new(new)

    async def process_topic_deletion(self) -> None:
        """Process requests to delete topics, in /admin/delete_topics."""
        wanted = set(await self._services.store.children(DELETE_TOPICS_PATH))
        unknown = wanted - self._context.assignments.keys()
        if unknown:
            logger.warning("Ignoring deletion of unknown topics=%s", ",".join(sorted(unknown)))
            await self._deletion.remove_requests(unknown)
        wanted -= unknown
        if not self._configs.broker.delete_topic_enable:
            logger.info(
                "Ignoring topic deletion, delete.topic.enable is false topics=%s",
                ",".join(sorted(wanted)),
            )
            await self._deletion.remove_requests(wanted)
        elif new := wanted - self._context.topics_to_delete:
            await self._deletion.enqueue_topics_for_deletion(new)

    # New partitions

    async def _begin(
        self, topics: Iterable[TopicZnode], first_of: Iterable[str] = ()
    ) -> dict[TopicPartition, bool]:
        """Register new partitions and bring them online; returns whether each has a leader."""
        names = self._register(topics)
        return await self._partitions.bring_online(names, ElectionStrategy.OFFLINE, first_of)

    def _register(self, topics: Iterable[TopicZnode]) -> list[TopicPartition]:
        """Add new partitions and their replicas to the context; none has a leader yet."""
        names = []
        for topic in topics:
            self._context.add_topic(topic.topic, topic.topic_id)
            for index, assigned in topic.assignment.items():
                names.append(TopicPartition(topic.topic, index))
                self._context.assign(names[-1], assigned)
        self._partitions.create(names)
        replicas = self._context.replicas_of(names)
        self._replicas.create(replicas)
        # Nothing is sent for a new replica here: its broker gets the LeaderAndIsr request of the
        # partition, when that comes online.
        self._replicas.start_online(replicas)
        return names


def _already_exists(name: str) -> ApiError:
    return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _assigned(assignment: Assignment, first_partition: int = 0) -> dict[int, ReplicaAssignment]:
    return {i: ReplicaAssignment(r) for i, r in enumerate(assignment, first_partition)}


def _place(
    new: NewTopic,
    brokers: Mapping[int, str | None],
    existing: Collection[str],
    configs: DynamicConfig,
) -> Assignment:
    """The assignment of a new topic. The name is checked here because of Kafka's order of checks:
    after the numbers, but before a manual assignment."""
    is_counted = (new.num_partitions, new.replication_factor) != (-1, -1)
    if new.manual_assignment:
        if is_counted:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )
        check_name(new.name, existing)
        check_partition_count(len(new.manual_assignment), configs.broker.max_partitions_per_request)
        return check_manual_assignment(new.manual_assignment)
    partitions, replicas = new.num_partitions, new.replication_factor
    config = configs.broker
    placed = place_new_topic(
        brokers,
        config.num_partitions if partitions == BROKER_DEFAULT else partitions,
        config.default_replication_factor if replicas == BROKER_DEFAULT else replicas,
        config.max_partitions_per_request,
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
