"""Answers OffsetForLeaderEpoch: where a leader's time ended (KIP-101, KIP-320).

A follower or a consumer that has records of an epoch learns up to which offset the leader has them
too; what it has beyond was never replicated. (-1, -1) where the leader knows nothing of the epoch.
"""

from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Every partition for itself."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(topic.topic, asked, context) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


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
