"""Handle OffsetForLeaderEpoch: return the end offset of a leader epoch (KIP-101).

A follower or consumer learns up to which offset it shares the records of an epoch with the leader;
what it has beyond that was never replicated. (-1, -1) if the leader does not know the epoch.

Versions:
    v1 the largest epoch up to the requested one
    v2 fencing by leader epoch, throttle time (KIP-320)
    v3 replica id
    v4 flexible

Deliberately missing: nothing.
"""

from collections.abc import Collection

from broker.api.authorization import is_authorized_on_cluster, unauthorized
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from broker.security.acls import AclOperation


def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Look up one partition after the other."""
    denied = _denied(request, context)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(
                        partition=asked.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    )
                    if topic.topic in denied
                    else _end_offset(topic.topic, asked, context)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _denied(request: OffsetForLeaderEpochRequest, context: RequestContext) -> Collection[str]:
    """Brokers need no permission on topics; consumers do (KIP-320)."""
    if is_authorized_on_cluster(context, AclOperation.CLUSTER_ACTION, quiet=True):
        return ()
    return unauthorized(context, AclOperation.DESCRIBE, (topic.topic for topic in request.topics))


def _end_offset(
    topic: str, asked: OffsetForLeaderPartition, context: RequestContext
) -> EpochEndOffset:
    try:
        partition = context.services.replicas.find(topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
        with partition.log.storing("look up an epoch"):
            found = partition.log.end_offset_for_epoch(asked.leader_epoch)
    except ApiError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    if found is None:
        return EpochEndOffset(partition=asked.partition)
    leader_epoch, end_offset = found
    return EpochEndOffset(
        partition=asked.partition, leader_epoch=leader_epoch, end_offset=end_offset
    )


def error_response(
    request: OffsetForLeaderEpochRequest, code: ErrorCode
) -> OffsetForLeaderEpochResponse:
    """The error on every partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=asked.partition, error_code=code)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
