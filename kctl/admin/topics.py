"""Topics: metadata, creation, deletion, new partitions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition, Uuid
from broker.net.client import Client
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from broker.protocol.messages.list_partition_reassignments import (
    OngoingPartitionReassignment as Move,
)
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kctl.admin.broker_queries import (
    change_by_controller,
    each_broker,
    from_controller,
    request_timeout_ms,
)
from kctl.model.outcomes import Outcome, outcome
from kctl.model.topics import NewTopic, Partition, Topic, TopicAssignment

_DELETE_BY_STATE = 6
"""The first version of DeleteTopics with the field `topics`."""


async def find_topics(client: Client, names: Iterable[str] | None = None) -> list[Topic]:
    """Topics sorted by name: those of `names` that exist, or all.

    ApiError for a topic that cannot be described.
    """
    answer = await client.metadata(names)
    found = [_topic(topic) for topic in answer.topics if _exists(topic)]
    return sorted(found, key=lambda topic: topic.name)


async def with_reassignments(client: Client, topics: Sequence[Topic]) -> list[Topic]:
    """The topics with the replicas being added and removed.

    Clusters before 2.4 cannot list reassignments; their metadata is used as it is, like in Kafka's
    tool. The same holds in a partial query if the controller does not answer.
    """
    try:
        answer = await from_controller(client, ListPartitionReassignmentsRequest())
    except ApiError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            return list(topics)
        raise
    if answer is None:
        return list(topics)
    moving = {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in answer.topics
        for partition in topic.partitions
    }
    return [_with_moves(topic, moving) for topic in topics] if moving else list(topics)


async def create_topics(
    client: Client, topics: Sequence[NewTopic], *, timeout_s: float, validate_only: bool = False
) -> list[Outcome]:
    """Create the topics in one request; outcomes in the same order."""
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics],
        timeout_ms=request_timeout_ms(timeout_s),
        validate_only=validate_only,
    )
    answer = await change_by_controller(client, request)
    results = {t.name: outcome(t.name, t.error_code, t.error_message) for t in answer.topics}
    return [results[topic.name] for topic in topics]


async def delete_topics(client: Client, names: Sequence[str], *, timeout_s: float) -> list[Outcome]:
    """Delete the topics in one request; outcomes in the same order."""
    await client.refresh_metadata()
    controller = {client.cluster.controller_id: None}
    versions = await each_broker(client, controller, lambda broker, _: client.versions_of(broker))
    timeout_ms = request_timeout_ms(timeout_s)
    newest = max((v.get(ApiKey.DELETE_TOPICS, (0, 0))[1] for v in versions.values()), default=0)
    if newest >= _DELETE_BY_STATE:
        states = [DeleteTopicState(name=name) for name in names]
        request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
    else:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    answer = await change_by_controller(client, request)
    results = {
        topic.name or "": outcome(topic.name or "", topic.error_code, topic.error_message)
        for topic in answer.responses
    }
    return [results[name] for name in names]


async def add_partitions(
    client: Client,
    topics: Sequence[Topic],
    count: int,
    assignment: TopicAssignment | None,
    *,
    timeout_s: float,
    validate_only: bool = False,
) -> list[Outcome]:
    """Increase each topic to `count` partitions; `assignment` covers all partitions."""
    request = CreatePartitionsRequest(
        topics=[_grown(topic, count, assignment) for topic in topics],
        timeout_ms=request_timeout_ms(timeout_s),
        validate_only=validate_only,
    )
    answer = await change_by_controller(client, request)
    return [
        outcome(result.name, result.error_code, result.error_message) for result in answer.results
    ]


async def gather_topics(client: Client, names: Iterable[str] | None) -> list[Topic]:
    """Topics with their reassignments."""
    topics = await find_topics(client, names)
    return await with_reassignments(client, topics) if topics else topics


async def live_brokers(client: Client) -> frozenset[int]:
    """The ids of the live brokers."""
    answer = await client.send(MetadataRequest(topics=[]))
    return frozenset(broker.node_id for broker in answer.brokers)


def _exists(topic: MetadataResponseTopic) -> bool:
    """Whether the topic exists; ApiError if it cannot be described."""
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if topic.error_code in unknown:
        return False
    # A topic that was just created has no leaders yet.
    if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        raise ApiError(ErrorCode(topic.error_code), f"topic {topic.name}")
    return True


def _topic(topic: MetadataResponseTopic) -> Topic:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return Topic(
        name=topic.name or "",
        topic_id=None if topic.topic_id == Uuid.ZERO else topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(map(_partition, partitions)),
    )


def _partition(partition: MetadataResponsePartition) -> Partition:
    return Partition(
        id=partition.partition_index,
        leader=partition.leader_id if partition.leader_id >= 0 else None,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
    )


def _with_moves(topic: Topic, moving: Mapping[TopicPartition, Move]) -> Topic:
    partitions = [
        _moving(partition, moving.get(TopicPartition(topic.name, partition.id)))
        for partition in topic.partitions
    ]
    return replace(topic, partitions=tuple(partitions))


def _moving(partition: Partition, move: Move | None) -> Partition:
    if move is None:
        return partition
    return replace(
        partition, adding=tuple(move.adding_replicas), removing=tuple(move.removing_replicas)
    )


def _creatable(topic: NewTopic) -> CreatableTopic:
    assigned = topic.assignment is not None
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assigned or topic.num_partitions is None else topic.num_partitions,
        replication_factor=(
            -1 if assigned or topic.replication_factor is None else topic.replication_factor
        ),
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(topic.assignment or ())
        ],
        configs=[
            CreatableTopicConfig(name=name, value=topic.configs[name]) for name in topic.configs
        ],
    )


def _grown(topic: Topic, count: int, assignment: TopicAssignment | None) -> CreatePartitionsTopic:
    new = None if assignment is None else list(assignment)[len(topic.partitions) :]
    return CreatePartitionsTopic(
        name=topic.name,
        count=count,
        assignments=None
        if new is None
        else [CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in new],
    )
