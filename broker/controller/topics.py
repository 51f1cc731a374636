"""Creates, grows and deletes topics, and tells the broker what it leads: a cluster of one.

One change at a time: a lock is the event queue. Each is written to the store first, in one
transaction; then the logs are made and led; then clients see it. A crash in between is mended at
the next start, which makes what the store says.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from broker.assignment import Assignment
from broker.config.dynamic import DynamicConfig, EntityType
from broker.config.values import ConfigError
from broker.controller.election import elect_if_offline
from broker.controller.reassignment import (
    check_target,
    is_complete,
    origin_of,
    reassign_to,
    target_of,
)
from broker.controller.topic_plan import (
    BROKER_DEFAULT,
    check_absent,
    check_manual_assignment,
    check_name,
    place_more_partitions,
    place_new_topic,
)
from broker.controller.topic_records import (
    StoredTopic,
    add_partitions,
    change_replicas,
    create_topic,
    delete_topic,
    first_states,
    write_states,
)
from broker.errors import ApiError, ErrorCode
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.topics import ReplicaAssignment
from broker.metadata_cache import NO_LEADER, MetadataCache, PartitionMetadata, TopicMetadata
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC


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

    def __init__(
        self,
        store: MetadataStore,
        configs: DynamicConfig,
        metadata: MetadataCache,
        broker: LocalBroker,
        controller_epoch: int,
    ) -> None:
        self._store = store
        self._configs = configs
        self._metadata = metadata
        self._broker = broker
        self._controller_epoch = controller_epoch
        self._one_at_a_time = asyncio.Lock()
        self._creating: dict[str, asyncio.Task[None]] = {}
        """Topics that somebody wants and nobody waits for."""
        self._reassignments: dict[TopicPartition, ReplicaAssignment] = {}

    async def start(self, topics: Iterable[StoredTopic]) -> None:
        """Lead what the store says, and show it to clients; what has lost its leader elects."""
        for stored in topics:
            topic = await self._elect(stored)
            await self._broker.become(topic.topic_id, topic.states, is_new=False)
            self._reassignments |= topic.reassignments
            self._show(topic)

    async def _elect(self, topic: StoredTopic) -> StoredTopic:
        live = self._metadata.live_brokers()
        allow_unclean = self._configs.topic(topic.name).unclean_leader_election_enable
        elected = {
            name: replace(new, controller_epoch=self._controller_epoch)
            for name, state in topic.states.items()
            if (new := elect_if_offline(state, live, allow_unclean=allow_unclean)) != state
        }
        await write_states(self._store, elected)
        return replace(topic, states={**topic.states, **elected})

    async def create_topic(self, new: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create a topic; ApiError says why it cannot be, and then nothing has changed."""
        async with self._one_at_a_time:
            check_absent(new.name, self._metadata.topics)
            configs = _without_nulls(new.configs)
            assignment = self._place(new)
            self._check_configs(configs)
            if validate_only:
                return CreatedTopic(Uuid.ZERO, assignment, configs)
            states = self._first_states(new.name, assignment, 0)
            topic = StoredTopic(new.name, Uuid.random(), states)
            await self._store.multi(list(create_topic(topic, configs)))
            self._configs.apply(EntityType.TOPIC, new.name, configs)
            await self._broker.become(topic.topic_id, states, is_new=True)
            self._show(topic)
            is_led = all(state.leader != NO_LEADER for state in states.values())
            return CreatedTopic(topic.topic_id, assignment, configs, is_led)

    def _first_states(
        self, name: str, assignment: Assignment, first_partition: int
    ) -> dict[TopicPartition, LeaderAndIsr]:
        placed = dict(enumerate(assignment, first_partition))
        live = self._metadata.live_brokers()
        return first_states(name, placed, live, self._controller_epoch)

    def request_creation(self, name: str) -> None:
        """Create a topic soon; who wants it will ask for it again."""
        if name not in self._creating:
            task = asyncio.get_running_loop().create_task(self.auto_create(name))
            self._creating[name] = task
            task.add_done_callback(lambda _: self._creating.pop(name, None))

    async def auto_create(self, name: str) -> None:
        """Create a topic that a client asked for, unless somebody else did meanwhile."""
        try:
            await self.create_topic(self._as_wanted(name))
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    def _as_wanted(self, name: str) -> NewTopic:
        """The broker's own topics have settings of their own."""
        config = self._configs.broker
        if name == OFFSETS_TOPIC:
            return NewTopic(
                name,
                config.offsets_topic_num_partitions,
                self._replicas(config.offsets_topic_replication_factor),
                configs={
                    "cleanup.policy": "compact",
                    "segment.bytes": str(config.offsets_topic_segment_bytes),
                    "compression.type": "producer",
                },
            )
        if name == TRANSACTION_STATE_TOPIC:
            return NewTopic(
                name,
                config.transaction_state_log_num_partitions,
                self._replicas(config.transaction_state_log_replication_factor),
                configs={
                    "unclean.leader.election.enable": "false",
                    "compression.type": "uncompressed",
                    "cleanup.policy": "compact",
                    "min.insync.replicas": str(
                        self._replicas(config.transaction_state_log_min_isr)
                    ),
                    "segment.bytes": str(config.transaction_state_log_segment_bytes),
                },
            )
        return NewTopic(name)

    def _replicas(self, wanted: int) -> int:
        """No more than there can be: a cluster of one broker has room for one."""
        return min(wanted, len(self._metadata.live_brokers()))

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
            if any(moving.topic == name for moving in self._reassignments):
                raise ApiError(
                    ErrorCode.REASSIGNMENT_IN_PROGRESS,
                    f"A partition reassignment is in progress for the topic '{name}'.",
                )
            current = [partition.replicas for partition in topic.partitions]
            brokers = self._metadata.live_brokers()
            placed = place_more_partitions(brokers, current, count, manual)
            if validate_only:
                return
            added = self._first_states(name, placed, len(current))
            known = self._stored(topic)
            grown = replace(known, states={**known.states, **added})
            await self._store.multi(list(add_partitions(grown, added)))
            await self._broker.become(topic.topic_id, added, is_new=True)
            self._show(grown)

    async def delete_topic(self, name: str) -> None:
        """Take the topic away; its files go after `file.delete.delay.ms`."""
        async with self._one_at_a_time:
            topic = self._known(name)
            self._metadata.remove([name])
            names = [TopicPartition(name, index) for index in range(len(topic.partitions))]
            await self._broker.stop(names, delete=True)
            for partition in names:
                self._reassignments.pop(partition, None)
            await self._store.multi(await delete_topic(self._store, name))
            self._configs.apply(EntityType.TOPIC, name, {})

    @property
    def reassignments(self) -> Mapping[TopicPartition, ReplicaAssignment]:
        """The partitions whose replicas are being changed."""
        return self._reassignments

    async def reassign(self, name: TopicPartition, target: Sequence[int] | None) -> None:
        """Let a partition have the `target` replicas; None cancels what is under way.

        Where replicas have to come or go that are not in sync, that stays under way. ApiError says
        why it cannot be, and then nothing has changed.
        """
        async with self._one_at_a_time:
            known = self._partition(name)
            current = self._reassignments.get(name) or ReplicaAssignment(
                known.replicas if known else ()
            )
            if target is not None:
                check_target(target, current, self._metadata.live_brokers())
            elif name in self._reassignments:
                target = origin_of(current)
            else:
                raise ApiError(
                    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                    "No partition reassignment is in progress.",
                )
            if known is None:
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
                )
            await self._move(name, known, reassign_to(current, target))

    async def _move(
        self, name: TopicPartition, known: PartitionMetadata, assignment: ReplicaAssignment
    ) -> None:
        """Write the replicas in a new leader epoch, and go on as long as some are not in sync."""
        self._reassignments.pop(name, None)
        replicas = assignment.replicas
        if is_complete(assignment, known.isr):
            replicas = target_of(assignment)
        else:
            self._reassignments[name] = assignment
        state = LeaderAndIsr(
            leader=known.leader,
            leader_epoch=known.leader_epoch + 1,
            isr=known.isr,
            replicas=replicas,
            controller_epoch=self._controller_epoch,
        )
        topic = self._stored(self._known(name.topic))
        moved = replace(topic, states={**topic.states, name: state})
        await self._store.multi(list(change_replicas(moved, name)))
        await self._broker.become(topic.topic_id, {name: state}, is_new=False)
        self._show(moved)

    def _partition(self, name: TopicPartition) -> PartitionMetadata | None:
        topic = self._metadata.topics.get(name.topic)
        if topic is None or not 0 <= name.partition < len(topic.partitions):
            return None
        return topic.partitions[name.partition]

    def _stored(self, topic: TopicMetadata) -> StoredTopic:
        reassignments = {n: a for n, a in self._reassignments.items() if n.topic == topic.name}
        return StoredTopic(topic.name, topic.topic_id, _states(topic), reassignments)

    def _show(self, topic: StoredTopic) -> None:
        live = self._metadata.live_brokers()
        partitions = tuple(
            PartitionMetadata(
                state.leader,
                state.leader_epoch,
                state.replicas,
                state.isr,
                tuple(replica for replica in state.replicas if replica not in live),
            )
            for state in topic.states.values()
        )
        self._metadata.put([TopicMetadata(topic.name, topic.topic_id, partitions)])

    def _known(self, name: str) -> TopicMetadata:
        topic = self._metadata.topics.get(name)
        if topic is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        return topic

    def _check_configs(self, configs: Mapping[str, str]) -> None:
        try:
            self._configs.validate_topic(configs)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error

    def _place(self, new: NewTopic) -> Assignment:
        """The replicas; and the name is checked, which Kafka does after counting, before manual."""
        is_counted = (new.num_partitions, new.replication_factor) != (-1, -1)
        if new.manual_assignment:
            if is_counted:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "Both numPartitions or replicationFactor and replicasAssignments were set. "
                    "Both cannot be used at the same time.",
                )
            check_name(new.name, self._metadata.topics)
            return check_manual_assignment(new.manual_assignment)
        partitions, replicas = new.num_partitions, new.replication_factor
        config = self._configs.broker
        placed = place_new_topic(
            self._metadata.live_brokers(),
            config.num_partitions if partitions == BROKER_DEFAULT else partitions,
            config.default_replication_factor if replicas == BROKER_DEFAULT else replicas,
        )
        check_name(new.name, self._metadata.topics)
        return placed


def _without_nulls(configs: Mapping[str, str | None]) -> dict[str, str]:
    nulls = [key for key, value in configs.items() if value is None]
    if nulls:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    return {key: value for key, value in configs.items() if value is not None}


def _states(topic: TopicMetadata) -> dict[TopicPartition, LeaderAndIsr]:
    return {
        TopicPartition(topic.name, index): LeaderAndIsr(
            known.leader, known.leader_epoch, known.isr, known.replicas
        )
        for index, known in enumerate(topic.partitions)
    }
