"""Handle ListOffsets: look up an offset by timestamp, or the start or end of a partition.

A consumer may read up to the high watermark, with read_committed up to the last stable offset. That
is its "latest" offset, and records beyond it are not found by timestamp. Version 0 returns base
offsets of segments instead (see `legacy_offsets_before`).

Versions:
    v0 many offsets per partition: base offsets of segments
    v1 one offset, with its timestamp (KIP-79)
    v2 isolation level (KIP-98)
    v3 clients wait out a throttle time themselves, after the response (KIP-219)
    v4 leader epochs (KIP-320)
    v5 OFFSET_NOT_AVAILABLE (KIP-207)
    v6 flexible
    v7 the offset with the largest timestamp (KIP-734)
    v8 the local log start offset (KIP-405)
    v9 the last offset in tiered storage (KIP-1005)

Deliberately missing: tiered storage: v8 and v9 answer for the local log.
"""

from collections import Counter
from typing import Final

from broker.api.authorization import unauthorized
from broker.api.context import RequestContext
from broker.errors import ApiError, ErrorCode
from broker.log.offset_lookup import legacy_offsets_before, offset_for_timestamp
from broker.log.offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    TimestampedOffset,
)
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from broker.records.layout import NO_TIMESTAMP
from broker.replica.partition import Partition
from broker.security.acls import AclOperation

_READ_COMMITTED: Final = 1
_CONSUMER: Final = -1
_DEBUGGING_CONSUMER: Final = -2
_OFFSET_NOT_AVAILABLE: Final = 5
"""The first version that knows this error code."""
_EPOCHS: Final = 4
"""The first version with a field for the leader epoch."""
_FIRST_VERSION_OF: Final = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
}


def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    """Look up every partition. A duplicate one is an error, except in version 0."""
    named = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    if context.api_version == 0:
        named.clear()
    denied = unauthorized(context, AclOperation.DESCRIBE, (topic.name for topic in request.topics))
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _failed(asked.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    if topic.name in denied
                    else _failed(asked.partition_index, ErrorCode.INVALID_REQUEST)
                    if named[topic.name, asked.partition_index] > 1
                    else _list_partition(topic.name, asked, request, context)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _list_partition(
    topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsPartitionResponse:
    try:
        if asked.timestamp < 0 and not _is_special(asked.timestamp, context.api_version):
            return _failed(asked.partition_index, ErrorCode.UNSUPPORTED_VERSION)
        partition = context.services.replicas.find(topic, asked.partition_index)
        if request.replica_id == _DEBUGGING_CONSUMER:
            partition.check_epoch(asked.current_leader_epoch)
        else:
            partition.check_leader(asked.current_leader_epoch)
        if context.api_version == 0:
            return _old_style(partition, asked, request)
        found = _by_time(partition, asked.timestamp, request)
    except ApiError as error:
        return _failed(asked.partition_index, _code_for(error.code, context.api_version))
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    leader_epoch = found.leader_epoch if context.api_version >= _EPOCHS else None
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=-1 if leader_epoch is None else leader_epoch,
    )


def _code_for(code: ErrorCode, version: int) -> ErrorCode:
    """The error code for a version that may not know it."""
    if code == ErrorCode.OFFSET_NOT_AVAILABLE and version < _OFFSET_NOT_AVAILABLE:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return code


def _is_special(timestamp: int, version: int) -> bool:
    return timestamp in _FIRST_VERSION_OF and version >= _FIRST_VERSION_OF[timestamp]


def _visible_end(partition: Partition, request: ListOffsetsRequest) -> int:
    if request.replica_id != _CONSUMER:
        return partition.log.log_end_offset
    if request.isolation_level == _READ_COMMITTED:
        return partition.log.last_stable_offset
    return partition.log.high_watermark


def _by_time(
    partition: Partition, timestamp: int, request: ListOffsetsRequest
) -> TimestampedOffset | None:
    end = _visible_end(partition, request)
    # The high watermark of a new leader may lag behind what its predecessor has shown to consumers.
    # It is the high watermark also for read_committed: an open transaction keeps the last stable
    # offset below the epoch's start for as long as it lasts.
    is_lagging = (
        request.replica_id == _CONSUMER
        and partition.log.high_watermark < partition.epoch_start_offset
    )
    if timestamp == LATEST_TIMESTAMP:
        if is_lagging:
            raise _offset_not_available(partition)
        return TimestampedOffset(NO_TIMESTAMP, end, partition.state.leader_epoch)
    found = offset_for_timestamp(partition.log, timestamp)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return found  # in an empty log this is also its end
    if found is not None and found.offset < end:
        return found
    if is_lagging:
        raise _offset_not_available(partition)
    return None


def _offset_not_available(partition: Partition) -> ApiError:
    return ApiError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"{partition.name}: the high watermark is below the start of the leader epoch",
    )


def _old_style(
    partition: Partition, asked: ListOffsetsPartition, request: ListOffsetsRequest
) -> ListOffsetsPartitionResponse:
    offsets = legacy_offsets_before(partition.log, asked.timestamp, asked.max_num_offsets)
    if asked.max_num_offsets <= 0:
        offsets = []
    end = _visible_end(partition, request)
    if any(offset > end for offset in offsets):  # the client may not read beyond `end`
        offsets = [end, *(offset for offset in offsets if offset < end)][: asked.max_num_offsets]
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, old_style_offsets=offsets
    )


def _failed(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def error_response(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    """The error code for every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_failed(asked.partition_index, code) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )
