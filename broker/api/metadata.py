"""Answers Metadata: brokers, controller, topics.

Version 0 cannot say "all topics" with null: there an empty list means all, from 1 on none. Topics
asked for by name (not by id) that do not exist are created if both the request and the broker
(`auto.create.topics.enable`) allow it; the answer then waits until they are there.
"""

from collections.abc import Awaitable, Iterable

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import PartitionMetadata, TopicMetadata
from broker.model import Uuid
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker.topic_names import INTERNAL_TOPICS, name_problem

_NOT_ASKED = -0x80000000  # authorized operations, while nobody authorizes


def handle(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Awaitable[MetadataResponse]:
    """The cluster as the client's listener shows it; a topic that is not there has an error."""
    metadata = context.services.metadata
    _check_ids(request, context.api_version)
    if request.topics is None or (not request.topics and context.api_version == 0):
        return _respond(context, [_describe(topic) for topic in metadata.topics.values()])
    if context.services.config.auto_create_topics_enable and request.allow_auto_topic_creation:
        missing = [t.name for t in request.topics if t.name and t.name not in metadata.topics]
        if missing:
            return _create_and_describe(missing, request.topics, context)
    return _respond(context, [_look_up(topic, context) for topic in request.topics])


def _check_ids(request: MetadataRequest, version: int) -> None:
    """Versions 10 and 11 have a place for a topic id but no way to ask by it (KIP-516)."""
    if version < 12 and any(
        topic.name is None or topic.topic_id != Uuid.ZERO for topic in request.topics or ()
    ):
        message = f"in version {version} topics are asked for by name, not by id"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


async def _create_and_describe(
    missing: Iterable[str], asked: Iterable[MetadataRequestTopic], context: RequestContext
) -> MetadataResponse:
    failed: dict[str, ErrorCode] = {}
    for name in dict.fromkeys(missing):
        try:
            await context.services.controller.auto_create(name)
        except ApiError as error:
            failed[name] = error.code
    topics = [
        MetadataResponseTopic(error_code=failed[topic.name], name=topic.name)
        if topic.name is not None and topic.name in failed
        else _look_up(topic, context)
        for topic in asked
    ]
    return _respond(context, topics)


def _respond(context: RequestContext, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    metadata = context.services.metadata
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.broker_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in metadata.brokers_of(context.peer.listener_name)
        ],
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        topics=topics,
    )


def _look_up(asked: MetadataRequestTopic, context: RequestContext) -> MetadataResponseTopic:
    """By id if there is one, else by name."""
    metadata = context.services.metadata
    if asked.topic_id != Uuid.ZERO:
        name = metadata.names.get(asked.topic_id)
        if name is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id
            )
        return _describe(metadata.topics[name])
    name = asked.name or ""
    topic = metadata.topics.get(name)
    if topic is not None:
        return _describe(topic)
    is_legal = name_problem(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _describe(topic: TopicMetadata) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _describe_partition(index, partition)
            for index, partition in enumerate(topic.partitions)
        ],
        topic_authorized_operations=_NOT_ASKED,
    )


def _describe_partition(index: int, partition: PartitionMetadata) -> MetadataResponsePartition:
    has_leader = partition.leader >= 0
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=list(partition.offline_replicas),
    )


def error_response(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    """The error on every topic asked for; there is no other place for it.

    A name that is null reads as empty: most versions have no null here.
    """
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )
