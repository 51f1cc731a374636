"""Answers Metadata: brokers, controller, topics.

Version 0 cannot say "all topics" with null: there an empty list means all, from 1 on none. Topics
asked for by name (not by id) that do not exist are created if both the request and the broker
(`auto.create.topics.enable`) allow it; the answer then waits until they are there.

A broker that has only just started knows of nobody, not even of itself, until the controller tells
it. An empty cluster is nothing that clients expect (librdkafka then asks no more), so they wait.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Iterable, Mapping

from broker.api.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import NO_LEADER, PartitionMetadata, TopicMetadata
from broker.model import Uuid
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker.topic_names import INTERNAL_TOPICS, name_problem

_ALL_FROM_EMPTY = 0
"""The version in which an empty list asks for all topics."""
_LISTENER_ERRORS = 6
"""The first version that tells a missing listener from a missing leader."""
_TOPIC_IDS = 12
"""The version that asks by topic id."""
_LONGEST_WAIT_S = 10
"""For the controller's first word; then the client hears that the cluster is empty."""


def handle(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Awaitable[MetadataResponse]:
    """The cluster as the client's listener shows it; a topic that is not there has an error."""
    _check_ids(request, context.api_version)
    if not context.services.metadata.told.is_set():
        return _answer_when_told(request, context)
    return _answer(request, context)


async def _answer_when_told(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_WAIT_S):
            await context.services.metadata.told.wait()
    answer = _answer(request, context)
    return answer if isinstance(answer, MetadataResponse) else await answer


def _answer(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Awaitable[MetadataResponse]:
    services, version = context.services, context.api_version
    if request.topics is None or (not request.topics and version == _ALL_FROM_EMPTY):
        return _respond(request, context, services.metadata.topics.values(), ())
    ids = dict.fromkeys(t.topic_id for t in request.topics if t.topic_id != Uuid.ZERO)
    if ids:
        return _respond_by_id(request, context, ids)
    names = dict.fromkeys(topic.name or "" for topic in request.topics)
    if services.dynamic.broker.auto_create_topics_enable and request.allow_auto_topic_creation:
        missing = [name for name in names if name and name not in services.metadata.topics]
        if missing:
            return _create_and_describe(request, context, names, missing)
    return _respond_by_name(request, context, names, {})


def _check_ids(request: MetadataRequest, version: int) -> None:
    """Versions 10 and 11 have a place for a topic id but no way to ask by it (KIP-516)."""
    if version < _TOPIC_IDS and any(
        topic.name is None or topic.topic_id != Uuid.ZERO for topic in request.topics or ()
    ):
        message = f"in version {version} topics are asked for by name, not by id"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


async def _create_and_describe(
    request: MetadataRequest,
    context: RequestContext,
    names: Iterable[str],
    missing: Iterable[str],
) -> MetadataResponse:
    failed: dict[str, ErrorCode] = {}
    for name in missing:
        try:
            await context.services.auto_creation.auto_create(name)
        except ApiError as error:
            failed[name] = error.code
    return _respond_by_name(request, context, names, failed)


def _respond_by_id(
    request: MetadataRequest, context: RequestContext, ids: Iterable[Uuid]
) -> MetadataResponse:
    """One id is enough to let only ids count: names beside it are ignored, as in Kafka."""
    metadata = context.services.metadata
    found = [metadata.topics[metadata.names[i]] for i in ids if i in metadata.names]
    unknown = [
        MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
        for topic_id in ids
        if topic_id not in metadata.names
    ]
    return _respond(request, context, found, unknown)


def _respond_by_name(
    request: MetadataRequest,
    context: RequestContext,
    names: Iterable[str],
    failed: Mapping[str, ErrorCode],
) -> MetadataResponse:
    topics = context.services.metadata.topics
    operations = _topic_operations(request)
    unknown = [
        MetadataResponseTopic(
            error_code=failed.get(name) or _why_unknown(name),
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=operations,
        )
        for name in names
        if name not in topics
    ]
    return _respond(request, context, [topics[name] for name in names if name in topics], unknown)


def _why_unknown(name: str) -> ErrorCode:
    is_legal = name_problem(name) is None
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION


def _topic_operations(request: MetadataRequest) -> int:
    return TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED


def _respond(
    request: MetadataRequest,
    context: RequestContext,
    found: Iterable[TopicMetadata],
    unknown: Iterable[MetadataResponseTopic],
) -> MetadataResponse:
    metadata = context.services.metadata
    reachable = metadata.ids_of(context.peer.listener_name)
    asks_cluster = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.broker_id, host=broker.host, port=broker.port, rack=broker.rack
            )
            for broker in metadata.brokers_of(context.peer.listener_name)
        ],
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        topics=[
            *(
                MetadataResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    is_internal=topic.name in INTERNAL_TOPICS,
                    partitions=[
                        _describe(index, partition, reachable, context)
                        for index, partition in enumerate(topic.partitions)
                    ],
                    topic_authorized_operations=_topic_operations(request),
                )
                for topic in found
            ),
            *unknown,
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS if asks_cluster else NOT_ASKED,
    )


def _describe(
    index: int, partition: PartitionMetadata, reachable: frozenset[int], context: RequestContext
) -> MetadataResponsePartition:
    """One partition, for a client that can reach these brokers.

    A leader that it cannot reach is none to it.
    """
    replicas, isr = partition.replicas, partition.isr
    offline = [r for r in replicas if r not in reachable or r in partition.offline_replicas]
    leader, code = partition.leader, ErrorCode.NONE
    if leader not in reachable:
        leader, code = NO_LEADER, _without_leader(partition.leader, context)
    if context.api_version == 0:  # the oldest clients do not know of brokers that are not there
        replicas = tuple(replica for replica in replicas if replica not in offline)
        isr = tuple(replica for replica in isr if replica not in offline)
        if offline:
            code = code or ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(replicas),
        isr_nodes=list(isr),
        offline_replicas=offline,
    )


def _without_leader(leader: int, context: RequestContext) -> ErrorCode:
    """It is gone, or it does not have the listener that the client came by."""
    is_elsewhere = context.services.metadata.is_alive(leader)
    if is_elsewhere and context.api_version >= _LISTENER_ERRORS:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE


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
