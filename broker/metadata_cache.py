"""The cluster metadata that this broker serves in Metadata, DescribeCluster and similar responses.

The controller sends it with UpdateMetadata: all live brokers each time, and the partitions whose
state has changed. One request is applied as a whole: no client sees half of it.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, islice
from typing import Final, NamedTuple

from broker.errors import ErrorCode
from broker.model import LEADER_DURING_DELETE, TopicPartition, Uuid
from broker.protocol.codec import Slices
from broker.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from broker.topic_names import check_partition

logger = logging.getLogger("state.change")

_SLICE: Final = 50
"""Partitions between two yields of an update."""
_SORTED_AT_ONCE: Final = 5_000
_APPLIED_IN_PLACE: Final = 1_000
"""An update of more topics is made in a copy, because it takes more than a slice."""
_MAX_REPLICAS: Final = 10_000
"""Ids of replicas, ISR and offline replicas of one partition, together."""


@dataclass(frozen=True, slots=True)
class BrokerEndpoint:
    """A live broker and its address on one listener."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """The state of one partition in the controller's latest UpdateMetadata."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic and its partitions."""

    name: str
    topic_id: Uuid
    partitions: dict[int, PartitionMetadata]
    """Partitions by index, in the order of their indexes.

    A map, as in Kafka: memory must depend on the number of partitions in a request, not on the
    index it names. Indexes may be missing while the controller has not sent their state.
    Invariant: never modified; an update replaces the whole topic.
    """


class MetadataUpdate(NamedTuple):
    """The outcome of an UpdateMetadata request."""

    deleted: list[TopicPartition]
    """The partitions that the request deletes, whether or not they were known."""
    error_code: ErrorCode
    """The last error of the topics and brokers that were left out; NONE if all were applied."""


@dataclass
class MetadataCache:
    """The cluster as the controller last described it. Modified only on the event loop."""

    cluster_id: str
    controller_id: int = -1
    """Broker id of the active controller; -1 before the first UpdateMetadata."""
    brokers: dict[str, tuple[BrokerEndpoint, ...]] = field(default_factory=dict)
    """Live brokers by listener name: a client sees the addresses of the listener it connected to.
    Invariant: sorted by broker id."""
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    """Topics by name. Invariant: each has at least one partition."""
    names: dict[Uuid, str] = field(default_factory=dict)
    """Topic names by id. Invariant: exactly the topics that have an id."""
    initialized: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first UpdateMetadata."""

    def brokers_of(self, listener_name: str) -> tuple[BrokerEndpoint, ...]:
        """The live brokers that have this listener."""
        return self.brokers.get(listener_name, ())

    def endpoint(self, broker_id: int, listener_name: str) -> BrokerEndpoint | None:
        """The address of a live broker; None if it is not alive or lacks the listener."""
        found = (b for b in self.brokers_of(listener_name) if b.broker_id == broker_id)
        return next(found, None)

    def ids_of(self, listener_name: str) -> frozenset[int]:
        """The ids of the live brokers that have this listener."""
        return frozenset(broker.broker_id for broker in self.brokers_of(listener_name))

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered, on whichever listener."""
        return any(b.broker_id == broker_id for listed in self.brokers.values() for b in listed)

    def partition(self, topic: str, index: int) -> PartitionMetadata | None:
        """The state of a partition; None if there is no such partition."""
        known = self.topics.get(topic)
        return known.partitions.get(index) if known is not None else None

    def has_partition(self, topic: str, index: int) -> bool:
        """Whether the cluster has such a partition."""
        return self.partition(topic, index) is not None

    def update(self, request: UpdateMetadataRequest) -> MetadataUpdate:
        """Apply an UpdateMetadata request at once."""
        updating = self.update_in_slices(request)
        while True:
            try:
                next(updating)
            except StopIteration as done:
                result: MetadataUpdate = done.value
                return result

    def update_in_slices(self, request: UpdateMetadataRequest) -> Slices[MetadataUpdate]:
        """Apply an UpdateMetadata request; nothing is visible before the last slice.

        A topic with an illegal name or number is left out and reported, and so is a broker; the
        others are applied: one such topic in the store must not keep a broker from learning of the
        cluster. There must be only one update at a time.
        """
        brokers = [broker for broker in request.live_brokers if broker.id >= 0]
        listeners = _by_listener(brokers)
        error_code = ErrorCode.NONE
        if len(brokers) < len(request.live_brokers):
            error_code = ErrorCode.INVALID_REQUEST
            logger.error("ignoring metadata of brokers with negative ids")
        deleted: list[TopicPartition] = []
        staged: dict[str, _Staged] = {}
        for topic in (yield from _by_topic(request)):
            if code := (yield from _check(topic)):
                error_code = code
                logger.error("ignoring metadata of topic=%r error=%s", topic.topic_name, code.name)
            else:
                deleted += yield from self._stage(topic, staged)
        topics = []
        for name, one in staged.items():
            topics.append(TopicMetadata(name, one.topic_id, (yield from one.in_order())))
            yield
        if len(staged) <= _APPLIED_IN_PLACE:
            self._apply(topics)
        else:
            yield from self._apply_copied(topics)
        self.controller_id = request.controller_id
        self.brokers = listeners
        self.initialized.set()
        return MetadataUpdate(deleted, error_code)

    def _stage(
        self, topic: UpdateMetadataTopicState, staged: dict[str, "_Staged"]
    ) -> Slices[list[TopicPartition]]:
        """Merge the states of a topic into what is known of it; returns its deleted partitions."""
        name = topic.topic_name
        one = staged.get(name)
        if one is None:
            known = self.topics.get(name)
            one = staged[name] = _Staged(
                known.topic_id if known else Uuid.ZERO, dict(known.partitions) if known else {}
            )
        if topic.topic_id != Uuid.ZERO:
            one.topic_id = topic.topic_id
        deleted = []
        for number, state in enumerate(topic.partition_states):
            if number % _SLICE == 0:
                yield
            if state.leader == LEADER_DURING_DELETE:
                deleted.append(TopicPartition(name, state.partition_index))
                one.partitions.pop(state.partition_index, None)
            else:
                one.put(state.partition_index, _partition(state))
        return deleted

    def _apply(self, topics: Iterable[TopicMetadata]) -> None:
        for topic in topics:
            if topic.partitions:
                self.put([topic])
            else:
                self.remove([topic.name])

    def _apply_copied(self, topics: Iterable[TopicMetadata]) -> Slices[None]:
        """Change a copy in slices, then replace the cache's content at once."""
        copied = MetadataCache(self.cluster_id, topics=dict(self.topics), names=dict(self.names))
        for topic in topics:
            copied._apply([topic])
            yield
        self.topics, self.names = copied.topics, copied.names

    def put(self, topics: Iterable[TopicMetadata]) -> None:
        """Add topics, or replace the ones of the same names."""
        for topic in topics:
            known = self.topics.get(topic.name)
            if known is not None:
                self.names.pop(known.topic_id, None)
            self.topics[topic.name] = topic
            if topic.topic_id != Uuid.ZERO:
                self.names[topic.topic_id] = topic.name

    def remove(self, names: Iterable[str]) -> None:
        """Remove topics; unknown names are ignored."""
        for name in names:
            topic = self.topics.pop(name, None)
            if topic is not None:
                self.names.pop(topic.topic_id, None)


@dataclass(slots=True)
class _Staged:
    """A topic as it will be when the update has been applied."""

    topic_id: Uuid
    partitions: dict[int, PartitionMetadata]
    is_sorted: bool = True

    def put(self, index: int, partition: PartitionMetadata) -> None:
        """Add or replace a partition."""
        if index not in self.partitions and index < next(reversed(self.partitions), -1):
            self.is_sorted = False
        self.partitions[index] = partition

    def in_order(self) -> Slices[dict[int, PartitionMetadata]]:
        """The partitions in the order of their indexes; mostly they are already."""
        if self.is_sorted:
            return self.partitions
        indexes = iter(self.partitions)
        runs = []
        while run := sorted(islice(indexes, _SORTED_AT_ONCE)):
            runs.append(run)
            yield
        ordered = {}
        for number, index in enumerate(merge(*runs)):
            ordered[index] = self.partitions[index]
            if number % _SLICE == 0:
                yield
        return ordered


def _by_topic(request: UpdateMetadataRequest) -> Slices[Iterable[UpdateMetadataTopicState]]:
    """The partition states by topic; up to version 4 each state carries its topic's name."""
    if not request.ungrouped_partition_states:
        return request.topic_states
    topics: dict[str, UpdateMetadataTopicState] = {}
    for number, state in enumerate(request.ungrouped_partition_states):
        topic = topics.get(state.topic_name)
        if topic is None:
            topic = topics[state.topic_name] = UpdateMetadataTopicState(topic_name=state.topic_name)
        topic.partition_states.append(state)
        if number % _SLICE == 0:
            yield
    return topics.values()


def _check(topic: UpdateMetadataTopicState) -> Slices[ErrorCode]:
    for number, state in enumerate(topic.partition_states):
        if number % _SLICE == 0:
            yield
        arrays = (state.replicas, state.isr, state.offline_replicas)
        if sum(map(len, arrays)) > _MAX_REPLICAS:
            return ErrorCode.INVALID_REQUEST
        ids = chain(*arrays)
        if code := check_partition(topic.topic_name, state.partition_index, ids, state.leader):
            return code
    return ErrorCode.NONE


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
"""Listener names for versions that do not send any: the names of the security protocols."""
