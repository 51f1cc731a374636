"""Handle OffsetCommit: store the committed offsets of a group.

Versions:
    v0 offsets are stored in znodes, without a group
    v1 offsets are stored in `__consumer_offsets`, with the client's timestamp; generation and
       member
    v2 retention time of the client instead of timestamps
    v3 throttle time
    v4 clients wait out a throttle time themselves, after the response (KIP-219)
    v5 the broker decides how long offsets are kept (KIP-211)
    v6 leader epochs (KIP-320)
    v7 static members (KIP-345)
    v8 flexible
    v9 the new group protocol (KIP-848)

Deliberately missing: the new group protocol, which needs KRaft.
"""

from collections.abc import Mapping

from broker.api.authorization import authorize_group
from broker.api.context import RequestContext
from broker.api.partitions import by_topic, split_by_existence, split_by_permission
from broker.errors import ApiError, ErrorCode
from broker.group.offset_manager import Committer
from broker.group.offsets import OffsetAndMetadata
from broker.java_strings import java_length, java_long
from broker.model import TopicPartition
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from broker.security.acls import AclOperation

_Asked = Mapping[TopicPartition, OffsetCommitRequestPartition]
_Errors = Mapping[TopicPartition, ErrorCode]


async def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    """Commit the offsets of all partitions that exist; others are UNKNOWN_TOPIC_OR_PARTITION."""
    authorize_group(context, AclOperation.READ, request.group_id)
    asked = {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in request.topics
        for partition in topic.partitions
    }
    allowed, denied = split_by_permission(asked, AclOperation.READ, context)
    known, unknown = split_by_existence(allowed, context)
    commit = _commit_to_nodes if context.api_version == 0 else _commit_to_group
    committed = await commit(request, {name: asked[name] for name in known}, context)
    return _response({**committed, **unknown, **denied})


async def _commit_to_group(
    request: OffsetCommitRequest, asked: _Asked, context: RequestContext
) -> _Errors:
    if not asked:
        return {}
    committer = Committer(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
    )
    now_ms = context.services.clock.now_ms()
    values = {name: _value(request, partition, now_ms) for name, partition in asked.items()}
    try:
        return await context.services.groups.offsets.commit(request.group_id, committer, values)
    except ApiError as error:
        return dict.fromkeys(asked, error.code)


def _value(
    request: OffsetCommitRequest, partition: OffsetCommitRequestPartition, now_ms: int
) -> OffsetAndMetadata:
    own_time, retention_ms = partition.commit_timestamp, request.retention_time_ms
    return OffsetAndMetadata(
        offset=partition.committed_offset,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=now_ms if own_time == -1 else own_time,
        leader_epoch=partition.committed_leader_epoch,
        expire_timestamp_ms=None if retention_ms == -1 else java_long(now_ms + retention_ms),
    )


async def _commit_to_nodes(
    request: OffsetCommitRequest, asked: _Asked, context: RequestContext
) -> _Errors:
    return {
        name: await _commit_to_node(request.group_id, name, partition, context)
        for name, partition in asked.items()
    }


async def _commit_to_node(
    group_id: str,
    name: TopicPartition,
    partition: OffsetCommitRequestPartition,
    context: RequestContext,
) -> ErrorCode:
    limit = context.services.groups.config.offset_metadata_max_bytes
    if java_length(partition.committed_metadata or "") > limit:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    nodes = context.services.offset_nodes
    try:
        await nodes.write_offset(group_id, name, partition.committed_offset)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def _response(errors: _Errors) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=index, error_code=code)
                    for index, code in partitions
                ],
            )
            for topic, partitions in by_topic(errors)
        ]
    )


def error_response(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The error on every partition."""
    names = (
        TopicPartition(t.name, p.partition_index) for t in request.topics for p in t.partitions
    )
    return _response(dict.fromkeys(names, code))
