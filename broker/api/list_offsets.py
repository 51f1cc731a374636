"""Answers ListOffsets: an offset by time, or the beginning and the end of a partition.

A consumer sees as far as the high watermark, with read_committed as far as the last stable offset:
that is what "latest" means to it, and a record found by time beyond that is not found. Version 0
answers with base offsets of segments instead (see `legacy_offsets_before`).
"""

from collections import Counter
from typing import Final

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

_READ_COMMITTED: Final = 1
_CONSUMER: Final = -1
_DEBUGGING_CONSUMER: Final = -2
_OFFSET_NOT_AVAILABLE: Final = 5
"""The first version that has a code for it."""
_EPOCHS: Final = 4
"""The first version that has a place for the leader epoch."""
_FIRST_VERSION_OF: Final = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
}


def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    """Look up every partition; one that is named twice is an error in itself, but in version 0."""
    named = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    if context.api_version == 0:
        named.clear()
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _failed(asked.partition_index, ErrorCode.INVALID_REQUEST)
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
        return _failed(asked.partition_index, _told(error.code, context.api_version))
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    leader_epoch = found.leader_epoch if context.api_version >= _EPOCHS else None
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=-1 if leader_epoch is None else leader_epoch,
    )


def _told(code: ErrorCode, version: int) -> ErrorCode:
    """The code in words that the version knows."""
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
    # Of a new leader, whose high watermark may lag behind what its predecessor has shown.
    is_lagging = request.replica_id == _CONSUMER and end < partition.epoch_start_offset
    if timestamp == LATEST_TIMESTAMP:
        if is_lagging:
            raise _not_yet(partition)
        return TimestampedOffset(NO_TIMESTAMP, end, partition.log.leader_epochs.latest_epoch)
    found = offset_for_timestamp(partition.log, timestamp)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return found  # an empty log begins where it ends
    if found is not None and found.offset < end:
        return found
    if is_lagging:
        raise _not_yet(partition)
    return None


def _not_yet(partition: Partition) -> ApiError:
    return ApiError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"{partition.name}: the high watermark has not reached the start of the leader's epoch",
    )


def _old_style(
    partition: Partition, asked: ListOffsetsPartition, request: ListOffsetsRequest
) -> ListOffsetsPartitionResponse:
    offsets = legacy_offsets_before(partition.log, asked.timestamp, asked.max_num_offsets)
    if asked.max_num_offsets <= 0:
        offsets = []
    end = _visible_end(partition, request)
    if any(offset > end for offset in offsets):  # the end, instead of what is not visible
        offsets = [end, *(offset for offset in offsets if offset < end)][: asked.max_num_offsets]
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, old_style_offsets=offsets
    )


def _failed(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def error_response(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    """The error on every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_failed(asked.partition_index, code) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )
