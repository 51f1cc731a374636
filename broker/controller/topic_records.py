"""Topics in the store: the operations that write, change and delete them, and reading them back."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from broker.metadata.errors import NoNode
from broker.metadata.recursive import ensure_path
from broker.metadata.store import Create, Delete, MetadataStore, Operation, SetData
from broker.metadata.znodes.configs import ConfigEntityZnode
from broker.metadata.znodes.topics import (
    TOPICS_PATH,
    PartitionStateZnode,
    ReplicaAssignment,
    TopicZnode,
    partition_path,
    partitions_path,
)
from broker.metadata_cache import NO_LEADER
from broker.model import LeaderAndIsr, TopicPartition, Uuid

_TOPIC_CONFIGS = "topics"
UNLED_EPOCH = -1
"""The leader epoch before the first leader's."""


@dataclass(frozen=True)
class StoredTopic:
    """A topic as the store has it."""

    name: str
    topic_id: Uuid
    states: Mapping[TopicPartition, LeaderAndIsr]
    reassignments: Mapping[TopicPartition, ReplicaAssignment] = field(default_factory=dict)
    """The partitions whose replicas are being changed."""


def first_states(
    topic: str, placed: Mapping[int, Sequence[int]], live: Collection[int], controller_epoch: int
) -> dict[TopicPartition, LeaderAndIsr]:
    """New partitions: the first live replica leads, all live ones are in sync, being empty."""
    states = {}
    for index, replicas in placed.items():
        isr = tuple(replica for replica in replicas if replica in live)
        states[TopicPartition(topic, index)] = LeaderAndIsr(
            leader=isr[0] if isr else NO_LEADER,
            leader_epoch=0,
            isr=isr,
            replicas=tuple(replicas),
            controller_epoch=controller_epoch,
        )
    return states


def create_topic(topic: StoredTopic, configs: Mapping[str, str]) -> Iterator[Operation]:
    """Write a new topic: its configuration, its assignment, the state of every partition."""
    yield Create(
        ConfigEntityZnode.path(_TOPIC_CONFIGS, topic.name), ConfigEntityZnode.encode(configs)
    )
    yield Create(TopicZnode.path(topic.name), _encode(topic))
    yield Create(partitions_path(topic.name))
    yield from _create_partitions(topic.states)


def add_partitions(
    topic: StoredTopic, added: Mapping[TopicPartition, LeaderAndIsr]
) -> Iterator[Operation]:
    """Write more partitions of `topic`, which already names them."""
    yield SetData(TopicZnode.path(topic.name), _encode(topic))
    yield from _create_partitions(added)


def change_replicas(topic: StoredTopic, name: TopicPartition) -> Iterator[Operation]:
    """Write a partition's new replicas and state, which `topic` already has."""
    yield SetData(TopicZnode.path(topic.name), _encode(topic))
    yield SetData(PartitionStateZnode.path(name), _state(topic.states[name]).encode())


def _encode(topic: StoredTopic) -> bytes:
    assignment = {
        name.partition: topic.reassignments.get(name, ReplicaAssignment(state.replicas))
        for name, state in topic.states.items()
    }
    return TopicZnode(topic.name, topic.topic_id, assignment).encode()


def _create_partitions(states: Mapping[TopicPartition, LeaderAndIsr]) -> Iterator[Operation]:
    for partition, state in states.items():
        yield Create(partition_path(partition))
        yield Create(PartitionStateZnode.path(partition), _state(state).encode())


def _state(state: LeaderAndIsr) -> PartitionStateZnode:
    return PartitionStateZnode(state.leader, state.leader_epoch, state.isr, state.controller_epoch)


async def delete_topic(store: MetadataStore, name: str) -> list[Operation]:
    """Remove all that the store has of a topic, children before parents."""
    operations: list[Operation] = []
    for index in await _children(store, partitions_path(name)):
        path = f"{partitions_path(name)}/{index}"
        operations += [Delete(f"{path}/{child}") for child in await _children(store, path)]
        operations.append(Delete(path))
    config_path = ConfigEntityZnode.path(_TOPIC_CONFIGS, name)
    for path in (partitions_path(name), TopicZnode.path(name), config_path):
        if await store.exists(path) is not None:
            operations.append(Delete(path))
    return operations


async def write_states(store: MetadataStore, states: Mapping[TopicPartition, LeaderAndIsr]) -> None:
    """Write what was decided of partitions, some of which may have had no state before."""
    operations: list[Operation] = []
    for name, state in states.items():
        path, data = PartitionStateZnode.path(name), _state(state).encode()
        if await store.exists(path) is not None:
            operations.append(SetData(path, data))
        else:
            await ensure_path(store, partition_path(name))
            operations.append(Create(path, data))
    if operations:
        await store.multi(operations)


async def load_topics(store: MetadataStore) -> list[StoredTopic]:
    """Every topic; a partition without state (all its replicas are empty) has no leader yet."""
    return [await _load_topic(store, name) for name in await store.children(TOPICS_PATH)]


async def _load_topic(store: MetadataStore, name: str) -> StoredTopic:
    topic = TopicZnode.decode(name, (await store.get(TopicZnode.path(name))).data)
    states, reassignments = {}, {}
    for index, assigned in topic.assignment.items():
        partition = TopicPartition(name, index)
        states[partition] = await _load_state(store, partition, assigned.replicas)
        if assigned.adding_replicas or assigned.removing_replicas:
            reassignments[partition] = assigned
    return StoredTopic(name, topic.topic_id or Uuid.ZERO, states, reassignments)


async def _load_state(
    store: MetadataStore, partition: TopicPartition, replicas: tuple[int, ...]
) -> LeaderAndIsr:
    try:
        node = await store.get(PartitionStateZnode.path(partition))
    except NoNode:
        return LeaderAndIsr(NO_LEADER, UNLED_EPOCH, replicas, replicas)
    state = PartitionStateZnode.decode(partition, node.data)
    return LeaderAndIsr(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        replicas=replicas,
        partition_epoch=node.stat.version,
        controller_epoch=state.controller_epoch,
    )


async def load_configs(store: MetadataStore) -> dict[str, dict[str, str]]:
    """The configuration overrides of every topic that has some."""
    root = ConfigEntityZnode.path(_TOPIC_CONFIGS, "").rstrip("/")
    found = {}
    for name in await _children(store, root):
        path = ConfigEntityZnode.path(_TOPIC_CONFIGS, name)
        if configs := ConfigEntityZnode.decode(path, (await store.get(path)).data):
            found[name] = configs
    return found


async def _children(store: MetadataStore, path: str) -> list[str]:
    try:
        return await store.children(path)
    except NoNode:
        return []
