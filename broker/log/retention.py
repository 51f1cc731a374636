"""Retention by start offset, size and time; always deletes whole segments from the front.

A segment with an offset at or above the high watermark is never deleted. The active segment can be
deleted too: a new one is rolled first, so the log end offset stays.
"""

import logging
from collections.abc import Callable

from broker.log.partition_log import PartitionLog
from broker.log.segment import LogSegment

logger = logging.getLogger(__name__)

# (segment, base offset of the next one or None) → whether the segment may go.
_MayGo = Callable[[LogSegment, int | None], bool]


def delete_old_segments(log: PartitionLog) -> int:
    """Delete the segments that retention no longer covers; returns how many.

    A log with only `compact` keeps its records, except those below the log start offset.
    """
    deleted = _delete_while(log, _is_before_start(log), "log start offset")
    if log.config.is_deleted_by_retention:
        deleted += _delete_while(log, _is_surplus(log), "retention.bytes")
        deleted += _delete_while(log, _is_expired(log), "retention.ms")
    return deleted


def _is_before_start(log: PartitionLog) -> _MayGo:
    def may_go(segment: LogSegment, next_offset: int | None) -> bool:
        return next_offset is not None and next_offset <= log.log_start_offset

    return may_go


def _is_surplus(log: PartitionLog) -> _MayGo:
    """Delete while what remains is at least `retention.bytes`."""
    surplus = log.size_in_bytes - log.config.retention_bytes

    def may_go(segment: LogSegment, next_offset: int | None) -> bool:
        nonlocal surplus
        if log.config.retention_bytes < 0 or surplus < segment.size:
            return False
        surplus -= segment.size
        return True

    return may_go


def _is_expired(log: PartitionLog) -> _MayGo:
    """Delete while the youngest record of a segment is older than `retention.ms`."""
    now_ms = log.environment.clock.now_ms()

    def may_go(segment: LogSegment, next_offset: int | None) -> bool:
        retention_ms = log.config.retention_ms
        return retention_ms >= 0 and now_ms - segment.largest_timestamp > retention_ms

    return may_go


def _delete_while(log: PartitionLog, may_go: _MayGo, reason: str) -> int:
    with log.lock, log.storing("delete old segments"):
        deletable = _deletable(log, may_go)
        if not deletable:
            return 0
        if len(deletable) == len(log.segments):
            log.roll()
        next_segment = log.segments.higher(deletable[-1])
        if next_segment is not None:
            log.maybe_increment_log_start_offset(next_segment.base_offset)
        logger.info("deleting segments partition=%s reason=%s %s", log.partition, reason, deletable)
        log.delete_segments(deletable)
        return len(deletable)


def _deletable(log: PartitionLog, may_go: _MayGo) -> list[LogSegment]:
    """The longest run from the front that may be deleted; never an empty active segment."""
    deletable: list[LogSegment] = []
    for segment in log.segments:
        higher = log.segments.higher(segment)
        next_offset = None if higher is None else higher.base_offset
        end = log.log_end_offset if next_offset is None else next_offset
        is_empty_active = higher is None and not segment.size
        if end > log.high_watermark or is_empty_active or not may_go(segment, next_offset):
            break
        deletable.append(segment)
    return deletable
