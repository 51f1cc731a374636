"""Truncation: removes records from the end of a log, with all state derived from them.

A follower truncates what its leader does not have. Afterwards segments, indexes, leader epochs,
recovery point and watermarks end at the new log end, and the producer state is rebuilt from its
latest snapshot below it. (Recovery has its own truncation, because there is no loaded log yet.)

A flush that runs concurrently does not raise the recovery point (`LocalLog.truncations`).
"""

from broker.log.partition_log import PartitionLog
from broker.log.producer_replay import rebuild_producer_state


def truncate_to(log: PartitionLog, offset: int) -> bool:
    """Remove all records from `offset` on; False if there were none."""
    with log.lock, log.storing("truncate"):
        if offset >= log.log_end_offset:
            log.leader_epochs.truncate_from_end(log.log_end_offset)
            return False
        if log.segments.first.base_offset > offset:
            _truncate_fully(log, offset, offset)
            return True
        log.delete_segments([s for s in log.segments if s.base_offset > offset])
        log.segments.active.truncate_to(offset)
        log.local.set_log_end(offset)
        log.leader_epochs.truncate_from_end(offset)
        log.log_start_offset = min(log.log_start_offset, offset)
        _after_truncation(log, offset, min(log.high_watermark, offset))
        return True


def truncate_fully_and_start_at(
    log: PartitionLog, offset: int, log_start_offset: int | None = None
) -> None:
    """Remove all records and continue at `offset`.

    For a follower whose leader's log starts after the end of its own. `log_start_offset` is
    `offset` unless the leader's log starts inside of a batch.
    """
    with log.lock, log.storing("truncate"):
        _truncate_fully(log, offset, offset if log_start_offset is None else log_start_offset)


def _truncate_fully(log: PartitionLog, offset: int, log_start_offset: int) -> None:
    log.delete_segments(list(log.segments))
    log.local.add_segment(offset)
    log.local.set_log_end(offset)
    log.leader_epochs.clear()
    log.producer_state.truncate_fully_and_start_at(offset)
    log.log_start_offset = log_start_offset
    _after_truncation(log, offset, offset)


def _after_truncation(log: PartitionLog, offset: int, high_watermark: int) -> None:
    now_ms = log.environment.clock.now_ms()
    rebuild_producer_state(log.producer_state, log.segments, log.log_start_offset, offset, now_ms)
    log.update_high_watermark(high_watermark)
