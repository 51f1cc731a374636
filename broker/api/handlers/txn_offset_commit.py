"""Handle TxnOffsetCommit (KIP-98): offsets that become valid when the transaction commits.

Versions:
    v0 COORDINATOR_NOT_AVAILABLE for COORDINATOR_LOAD_IN_PROGRESS, which clients up to v1 cannot
       handle
    v1 clients wait out a throttle time themselves, after the response (KIP-219)
    v2 leader epochs (KIP-320)
    v3 flexible; generation and member, which fence zombies (KIP-447)
    v4 TRANSACTION_ABORTABLE, before INVALID_TXN_STATE (KIP-890)

Deliberately missing: nothing.
"""

from collections.abc import Mapping

from broker.api.authorization import authorize_group, authorize_transactional_id
from broker.api.context import RequestContext
from broker.api.partitions import by_topic, split_by_existence, split_by_permission
from broker.errors import ApiError, ErrorCode
from broker.group.offset_manager import Committer
from broker.group.offsets import Commits, OffsetAndMetadata
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from broker.security.acls import AclOperation

_Errors = Mapping[TopicPartition, ErrorCode]


async def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    """Commit the offsets of all partitions that exist; others are UNKNOWN_TOPIC_OR_PARTITION."""
    authorize_transactional_id(context, AclOperation.WRITE, request.transactional_id)
    authorize_group(context, AclOperation.READ, request.group_id)
    now_ms = context.services.clock.now_ms()
    asked = {
        TopicPartition(topic.name, partition.partition_index): OffsetAndMetadata(
            offset=partition.committed_offset,
            metadata=partition.committed_metadata or "",
            commit_timestamp_ms=now_ms,
            leader_epoch=partition.committed_leader_epoch,
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    allowed, denied = split_by_permission(asked, AclOperation.READ, context)
    known, unknown = split_by_existence(allowed, context)
    committed = await _commit(request, {name: asked[name] for name in known}, context)
    return _response({**committed, **unknown, **denied})


async def _commit(
    request: TxnOffsetCommitRequest, commits: Commits, context: RequestContext
) -> _Errors:
    if not commits:
        return {}
    if request.producer_id < 0 or request.producer_epoch < 0:
        # Kafka fails to build the batch and answers the same. Checked before anything is changed:
        # offsets noted as pending would never become stable.
        return dict.fromkeys(commits, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        return await context.services.groups.offsets.commit_transactional(
            request.group_id,
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            Committer(request.member_id, request.group_instance_id, request.generation_id),
            commits,
        )
    except ApiError as error:
        return dict.fromkeys(commits, _for_version(error.code, context.api_version))


def _for_version(code: ErrorCode, version: int) -> ErrorCode:
    if version < 2 and code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if version < 4 and code is ErrorCode.TRANSACTION_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _response(errors: _Errors) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=index, error_code=code)
                    for index, code in partitions
                ],
            )
            for topic, partitions in by_topic(errors)
        ]
    )


def error_response(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """The error on every partition."""
    names = (
        TopicPartition(t.name, p.partition_index) for t in request.topics for p in t.partitions
    )
    return _response(dict.fromkeys(names, code))
