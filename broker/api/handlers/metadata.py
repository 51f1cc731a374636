"""Handle Metadata: brokers, controller and topics.

A topic that is requested by name, and does not exist, is created if both the request and the broker
(`auto.create.topics.enable`) allow it; the response then waits until it has a leader. This is a
deliberate difference: Kafka answers LEADER_NOT_AVAILABLE at once, and the client has to ask again.
Waiting spares the first produce to a new topic a retry and its backoff. Only a program that polls
Metadata to see whether a topic is gone notices the difference (docs/differences.md).

A broker that has just started does not know any broker, not even itself, until the controller sends
UpdateMetadata. librdkafka stops asking after an empty response, so requests wait until then.

Versions:
    v0 an empty list requests all topics
    v1 null requests all topics, an empty list none; controller, racks
    v2 cluster id (KIP-78)
    v3 throttle time
    v4 topic creation can be switched off (KIP-204)
    v5 offline replicas (KIP-112)
    v6 clients wait out a throttle time themselves, after the response (KIP-219)
    v7 leader epochs (KIP-320)
    v8 authorized operations (KIP-430)
    v9 flexible
    v10 topic ids (KIP-516)
    v11 no authorized operations of the cluster, which DescribeCluster has (KIP-700)
    v12 by topic id

Deliberately missing: nothing.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Collection, Iterable, Mapping

from broker.api.authorization import (
    NOT_REQUESTED,
    authorized_operations,
    cluster_operations,
    is_authorized_on_cluster,
    unauthorized,
)
from broker.api.context import RequestContext
from broker.api.controller_mutations import permissive_mutation_quota
from broker.api.slices import SMALL, in_slices
from broker.errors import ApiError, ErrorCode
from broker.metadata_cache import PartitionMetadata, TopicMetadata
from broker.model import NO_LEADER, Uuid
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker.security.acls import AclOperation, ResourceType
from broker.topic_names import INTERNAL_TOPICS, name_problem

_ALL_FROM_EMPTY = 0
"""The version in which an empty list requests all topics."""
_LISTENER_ERRORS = 6
"""The first version with an error for leaders without the client's listener."""
_TOPIC_IDS = 12
"""The first version with requests by topic id."""
_LONGEST_WAIT_S = 10
"""How long to wait for the first UpdateMetadata; then the response has no brokers."""


def handle(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Awaitable[MetadataResponse]:
    """Describe the cluster with the endpoints of the client's listener."""
    _check_ids(request, context.api_version)
    if not context.services.metadata.initialized.is_set():
        return _answer_when_told(request, context)
    return _answer(request, context)


async def _answer_when_told(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_WAIT_S):
            await context.services.metadata.initialized.wait()
    answer = _answer(request, context)
    return answer if isinstance(answer, MetadataResponse) else await answer


def _answer(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Awaitable[MetadataResponse]:
    services, version = context.services, context.api_version
    if request.topics is None or (not request.topics and version == _ALL_FROM_EMPTY):
        topics = services.metadata.topics
        hidden = unauthorized(context, AclOperation.DESCRIBE, topics, quiet=True)
        return _respond(request, context, [topics[n] for n in topics if n not in hidden], ())
    ids = dict.fromkeys(t.topic_id for t in request.topics if t.topic_id != Uuid.ZERO)
    if ids:
        return _respond_by_id(request, context, ids)
    names = dict.fromkeys(topic.name or "" for topic in request.topics)
    denied = unauthorized(context, AclOperation.DESCRIBE, names)
    if denied:
        return _respond_with_denied(request, context, names, _hidden(denied))
    return _respond_to_names(request, context, names)


def _respond_to_names(
    request: MetadataRequest, context: RequestContext, names: Collection[str]
) -> MetadataResponse | Awaitable[MetadataResponse]:
    """Describe topics that the client may see; create those that are missing if it may."""
    services = context.services
    if services.dynamic.broker.auto_create_topics_enable and request.allow_auto_topic_creation:
        missing = [name for name in names if name and name not in services.metadata.topics]
        denied = _denied_creation(missing, context)
        if denied:
            return _respond_with_denied(request, context, names, _not_created(denied))
        if missing:
            return _create_and_describe(request, context, names, missing)
    if len(names) > SMALL:
        return _respond_by_many_names(request, context, list(names))
    return _respond_by_name(request, context, names, {})


def _denied_creation(names: Collection[str], context: RequestContext) -> Collection[str]:
    """The topics that the client may not create."""
    if not names or is_authorized_on_cluster(context, AclOperation.CREATE, quiet=True):
        return ()
    return unauthorized(context, AclOperation.CREATE, names)


async def _respond_with_denied(
    request: MetadataRequest,
    context: RequestContext,
    names: Collection[str],
    denied: Mapping[str, MetadataResponseTopic],
) -> MetadataResponse:
    """Describe the topics that are not denied."""
    answer = _respond_to_names(request, context, [name for name in names if name not in denied])
    response = answer if isinstance(answer, MetadataResponse) else await answer
    response.topics.extend(denied.values())
    return response


def _hidden(names: Iterable[str]) -> dict[str, MetadataResponseTopic]:
    """Topics that the client may not see: it does not learn whether they exist."""
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return {name: MetadataResponseTopic(error_code=code, name=name) for name in names}


def _not_created(names: Iterable[str]) -> dict[str, MetadataResponseTopic]:
    """Topics that do not exist and that the client may not create."""
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return {
        name: MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)
        for name in names
    }


def _check_ids(request: MetadataRequest, version: int) -> None:
    """Versions 10 and 11 have topic ids in the request, but do not look them up (KIP-516)."""
    if version < _TOPIC_IDS and any(
        topic.name is None or topic.topic_id != Uuid.ZERO for topic in request.topics or ()
    ):
        message = f"version {version} looks up topics by name, not by id"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


async def _create_and_describe(
    request: MetadataRequest,
    context: RequestContext,
    names: Iterable[str],
    missing: Iterable[str],
) -> MetadataResponse:
    failed: dict[str, ErrorCode] = {}
    quota = permissive_mutation_quota(context)
    for name in missing:
        try:
            await context.services.auto_creation.auto_create(name)
            if quota:
                quota.record(context.services.dynamic.broker.num_partitions)
        except ApiError as error:
            failed[name] = error.code
        else:
            # Kafka's answer while a topic exists but this broker does not know a leader of it.
            failed[name] = ErrorCode.LEADER_NOT_AVAILABLE
    response = _respond_by_name(request, context, names, failed)
    if quota:
        response.throttle_time_ms = quota.throttle_ms  # type: ignore[misc]
    return response


def _respond_by_id(
    request: MetadataRequest, context: RequestContext, ids: Iterable[Uuid]
) -> MetadataResponse:
    """If one topic has an id, names are ignored, as in Kafka."""
    metadata = context.services.metadata
    names = {i: metadata.names[i] for i in ids if i in metadata.names}
    hidden = unauthorized(context, AclOperation.DESCRIBE, names.values())
    found = [metadata.topics[name] for name in names.values() if name not in hidden]
    denied = [
        MetadataResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=topic_id
        )
        for topic_id, name in names.items()
        if name in hidden
    ]
    unknown = [
        MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
        for topic_id in ids
        if topic_id not in metadata.names
    ]
    return _respond(request, context, found, unknown + denied)


def _respond_by_name(
    request: MetadataRequest,
    context: RequestContext,
    names: Iterable[str],
    failed: Mapping[str, ErrorCode],
) -> MetadataResponse:
    topics = context.services.metadata.topics
    unknown = [
        _unknown(name, failed.get(name), request, context) for name in names if name not in topics
    ]
    return _respond(request, context, [topics[name] for name in names if name in topics], unknown)


async def _respond_by_many_names(
    request: MetadataRequest, context: RequestContext, names: list[str]
) -> MetadataResponse:
    """The same in slices: unknown topics cost most, as there may be millions of them."""
    topics = context.services.metadata.topics
    unknown = await in_slices(
        lambda name: None if name in topics else _unknown(name, None, request, context), names
    )
    # Topics may have been created or deleted meanwhile.
    exist = {name for name, answer in zip(names, unknown, strict=True) if not answer}
    found = [topics[name] for name in exist if name in topics]
    deleted = [_unknown(name, None, request, context) for name in exist if name not in topics]
    return _respond(request, context, found, [*filter(None, unknown), *deleted])


def _unknown(
    name: str, code: ErrorCode | None, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code or _why_unknown(name),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=_topic_operations(name, request, context),
    )


def _why_unknown(name: str) -> ErrorCode:
    is_legal = name_problem(name) is None
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION


def _topic_operations(name: str, request: MetadataRequest, context: RequestContext) -> int:
    if not request.include_topic_authorized_operations:
        return NOT_REQUESTED
    return authorized_operations(context, ResourceType.TOPIC, name)


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
                        for index, partition in topic.partitions.items()
                    ],
                    topic_authorized_operations=_topic_operations(topic.name, request, context),
                )
                for topic in found
            ),
            *unknown,
        ],
        cluster_authorized_operations=cluster_operations(context)
        if asks_cluster
        else NOT_REQUESTED,
    )


def _describe(
    index: int, partition: PartitionMetadata, reachable: frozenset[int], context: RequestContext
) -> MetadataResponsePartition:
    """One partition, for a client that can reach these brokers.

    A leader that the client cannot reach is reported as missing.
    """
    replicas, isr = partition.replicas, partition.isr
    offline = [r for r in replicas if r not in reachable or r in partition.offline_replicas]
    leader, code = partition.leader, ErrorCode.NONE
    if leader not in reachable:
        leader, code = NO_LEADER, _without_leader(partition.leader, context)
    if context.api_version == 0:  # version 0 must not name brokers that are not in the response
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
    """The error if there is no leader, or none with the client's listener."""
    is_elsewhere = context.services.metadata.is_alive(leader)
    if is_elsewhere and context.api_version >= _LISTENER_ERRORS:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE


def error_response(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    """The error on every requested topic; there is no other place for it.

    A null name becomes an empty one, because most versions do not allow null.
    """
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )
