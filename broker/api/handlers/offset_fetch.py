"""Handle OffsetFetch: the committed offsets of groups.

An offset that was never committed is -1, without error.

Versions:
    v0 offsets from znodes
    v1 offsets from the coordinator; an error of the group is repeated for every partition
    v2 null requests all partitions; an error for the group
    v3 throttle time
    v4 clients wait out a throttle time themselves, after the response (KIP-219)
    v5 leader epochs (KIP-320)
    v6 flexible
    v7 require_stable: UNSTABLE_OFFSET_COMMIT for partitions with a pending commit (KIP-447)
    v8 many groups (KIP-709)
    v9 the new group protocol (KIP-848)

Deliberately missing: the new group protocol, which needs KRaft.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from broker.api.authorization import authorize_group
from broker.api.context import RequestContext
from broker.api.duplicates import remove_duplicates
from broker.api.partitions import by_topic, split_by_existence, split_by_permission
from broker.errors import ApiError, ErrorCode
from broker.group.offset_manager import FetchedOffset
from broker.model import TopicPartition
from broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from broker.security.acls import AclOperation

_Fetched = Mapping[TopicPartition, FetchedOffset]
_Topics = Sequence[OffsetFetchRequestTopic] | Sequence[OffsetFetchRequestTopics]


def handle(
    request: OffsetFetchRequest, context: RequestContext
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    """Fetch from memory; only version 0 has to wait, for znodes."""
    if context.api_version == 0:
        return _fetch_from_nodes(request, context)
    if context.api_version >= 8:
        remove_duplicates(request)
        groups = [_fetch_group(group, request.require_stable, context) for group in request.groups]
        return OffsetFetchResponse(groups=groups)
    try:
        fetched = _fetch(request.group_id, request.topics, request.require_stable, context)
    except ApiError as error:
        is_denied = error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED  # without topics, as Kafka
        if context.api_version >= 2 or is_denied:
            return OffsetFetchResponse(error_code=error.code)
        return error_response(request, error.code)
    return _response(fetched)


def _fetch_group(
    group: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> OffsetFetchResponseGroup:
    try:
        fetched = _fetch(group.group_id, group.topics, require_stable, context)
    except ApiError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
    topics = _topics(fetched, OffsetFetchResponseTopics, OffsetFetchResponsePartitions)
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _fetch(
    group_id: str, topics: _Topics | None, require_stable: bool, context: RequestContext
) -> _Fetched:
    """The offsets of a group, without those of topics that the client may not describe.

    Topics that the request names are an error then.
    """
    authorize_group(context, AclOperation.DESCRIBE, group_id)
    offsets, names = context.services.groups.offsets, _names(topics)
    if names is None:
        fetched = offsets.fetch(group_id, None, require_stable)
        allowed, _ = split_by_permission(fetched, AclOperation.DESCRIBE, context)
        return {name: fetched[name] for name in allowed}
    allowed, denied = split_by_permission(names, AclOperation.DESCRIBE, context)
    fetched = offsets.fetch(group_id, allowed, require_stable)
    return {**fetched, **{name: FetchedOffset(error=code) for name, code in denied.items()}}


async def _fetch_from_nodes(
    request: OffsetFetchRequest, context: RequestContext
) -> OffsetFetchResponse:
    authorize_group(context, AclOperation.DESCRIBE, request.group_id)
    names = _names(request.topics) or ()
    allowed, denied = split_by_permission(names, AclOperation.DESCRIBE, context)
    known, unknown = split_by_existence(allowed, context)
    fetched = {name: FetchedOffset(error=code) for name, code in (unknown | denied).items()}
    for name in known:
        fetched[name] = await _fetch_from_node(request.group_id, name, context)
    return _response(fetched)


async def _fetch_from_node(
    group_id: str, name: TopicPartition, context: RequestContext
) -> FetchedOffset:
    try:
        offset = await context.services.offset_nodes.read_offset(group_id, name)
    except ApiError as error:
        return FetchedOffset(error=error.code)
    if offset is None:
        return FetchedOffset(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return FetchedOffset(offset)


def _names(topics: _Topics | None) -> list[TopicPartition] | None:
    if topics is None:
        return None
    return [
        TopicPartition(topic.name, index) for topic in topics for index in topic.partition_indexes
    ]


def _response(fetched: _Fetched) -> OffsetFetchResponse:
    """The response in the form of versions 0 to 7."""
    topics = _topics(fetched, OffsetFetchResponseTopic, OffsetFetchResponsePartition)
    return OffsetFetchResponse(topics=topics)


def _topics(fetched: _Fetched, topic_class: Any, partition_class: Any) -> list[Any]:
    """Offsets by topic; versions 8 and later have other structs with the same fields."""
    return [
        topic_class(
            name=topic,
            partitions=[
                partition_class(
                    partition_index=index,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    metadata=offset.metadata,
                    error_code=offset.error,
                )
                for index, offset in partitions
            ],
        )
        for topic, partitions in by_topic(fetched)
    ]


def error_response(request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    """The error in every place that a version may have for it."""
    if request.groups:
        groups = [
            OffsetFetchResponseGroup(group_id=g.group_id, error_code=code) for g in request.groups
        ]
        return OffsetFetchResponse(groups=groups)
    failed = _response(dict.fromkeys(_names(request.topics) or (), FetchedOffset(error=code)))
    return OffsetFetchResponse(topics=failed.topics, error_code=code)
