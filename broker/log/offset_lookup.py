"""Finds offsets by timestamp (ListOffsets)."""

from broker.log.offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    TimestampedOffset,
)
from broker.log.partition_log import PartitionLog
from broker.log.segment import LogSegment
from broker.records.batch import Batch
from broker.records.layout import NO_TIMESTAMP


def offset_for_timestamp(log: PartitionLog, timestamp: int) -> TimestampedOffset | None:
    """The first record with a timestamp of at least `timestamp`, or what a special value means.

    EARLIEST: the log start offset. LATEST: the log end offset; the caller puts the high watermark
    or last stable offset in its place. MAX_TIMESTAMP: the (first) record with the largest
    timestamp. LATEST_TIERED: -1, as nothing is tiered. None if no record matches.
    """
    with log.lock, log.storing("search by time"):
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            start = log.log_start_offset
            return TimestampedOffset(NO_TIMESTAMP, start, log.leader_epochs.epoch_for_offset(start))
        if timestamp == LATEST_TIMESTAMP:
            latest = log.leader_epochs.latest_epoch
            return TimestampedOffset(NO_TIMESTAMP, log.log_end_offset, latest)
        if timestamp == LATEST_TIERED_TIMESTAMP:
            return TimestampedOffset(NO_TIMESTAMP, -1, -1)
        if timestamp == MAX_TIMESTAMP:
            return _max_timestamp(log)
        return _first_not_older(log, timestamp)


def _first_not_older(log: PartitionLog, timestamp: int) -> TimestampedOffset | None:
    for segment in log.segments:
        if segment.largest_timestamp >= timestamp:
            return _search_segment(segment, timestamp, log.log_start_offset)
    return None


def _search_segment(
    segment: LogSegment, timestamp: int, start_offset: int
) -> TimestampedOffset | None:
    """Search one segment; only batches whose max timestamp is large enough are decoded."""
    entry = segment.find_time_entry(timestamp)
    position = segment.position_of(max(entry.offset, start_offset))
    for batch_position, header in segment.log.headers(position):
        if header.max_timestamp < timestamp:
            continue
        _, batch = next(segment.log.batches(batch_position))
        for offset, record_timestamp, *_ in batch.record_tuples():
            if record_timestamp >= timestamp and offset >= start_offset:
                return TimestampedOffset(record_timestamp, offset, _epoch(batch))
    return None


def _max_timestamp(log: PartitionLog) -> TimestampedOffset | None:
    segment = max(log.segments, key=lambda segment: segment.max_timestamp.timestamp)
    largest = segment.max_timestamp
    for position, header in segment.log.headers(segment.position_of(largest.offset)):
        if header.max_timestamp != largest.timestamp or largest.timestamp < 0:
            continue
        _, batch = next(segment.log.batches(position))
        for offset, timestamp, *_ in batch.record_tuples():
            if timestamp == largest.timestamp:
                return TimestampedOffset(timestamp, offset, _epoch(batch))
    return None


def _epoch(batch: Batch) -> int | None:
    epoch = batch.header.partition_leader_epoch
    return None if epoch < 0 else epoch


def legacy_offsets_before(log: PartitionLog, timestamp: int, max_offsets: int) -> list[int]:
    """ListOffsets version 0: base offsets of segments last modified before `timestamp`.

    The log end offset is the first of them for LATEST; for EARLIEST only the start is given.
    """
    with log.lock, log.storing("search by time"):
        start = log.log_start_offset
        times = [(max(s.base_offset, start), s.last_modified_ms) for s in log.segments]
        if log.segments.active.size:
            times.append((log.log_end_offset, log.environment.clock.now_ms()))
    if timestamp == EARLIEST_TIMESTAMP:
        times = times[:1]
    elif timestamp != LATEST_TIMESTAMP:
        while times and times[-1][1] > timestamp:
            times.pop()
    return sorted((offset for offset, _ in times[-max_offsets:]), reverse=True)
