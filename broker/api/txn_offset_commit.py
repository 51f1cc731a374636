"""Answers TxnOffsetCommit (KIP-98): offsets that count when the producer's transaction commits.

Before version 3 nobody says which member commits, so zombies are not fenced (KIP-447). Clients of
version 0 and 1 break on COORDINATOR_LOAD_IN_PROGRESS and are told COORDINATOR_NOT_AVAILABLE. Those
before version 4 do not know TRANSACTION_ABORTABLE and are told INVALID_TXN_STATE (KIP-890).
"""

from collections.abc import Mapping

from broker.api.context import RequestContext
from broker.api.partitions import by_topic, split_by_existence
from broker.errors import ApiError, ErrorCode
from broker.group.offset_manager import Committer
from broker.group.offsets import Commits, OffsetAndMetadata
from broker.group.records import ProducerState
from broker.model import TopicPartition
from broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_Errors = Mapping[TopicPartition, ErrorCode]


async def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    """What exists is committed, all together; the rest is unknown."""
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
    known, unknown = split_by_existence(asked, context)
    committed = await _commit(request, {name: asked[name] for name in known}, context)
    return _response({**committed, **unknown})


async def _commit(
    request: TxnOffsetCommitRequest, commits: Commits, context: RequestContext
) -> _Errors:
    if not commits:
        return {}
    try:
        return await context.services.groups.offsets.commit_transactional(
            request.group_id,
            request.transactional_id,
            ProducerState(request.producer_id, request.producer_epoch),
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
