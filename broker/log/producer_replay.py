"""Rebuilds the producer state as of an offset: from the newest snapshot and the log after it."""

from broker.log.producer_state import ProducerState
from broker.log.segments import LogSegments


def rebuild_producer_state(
    state: ProducerState,
    segments: LogSegments,
    log_start_offset: int,
    last_offset: int,
    now_ms: int,
) -> None:
    """Rebuild the state as of `last_offset` (exclusive), and take a snapshot there.

    Snapshots are also taken at the start of the last two segments: the next truncation or the next
    start will need them.
    """
    is_empty = not state.producers and state.map_end_offset >= last_offset
    state.truncate_and_reload(log_start_offset, last_offset, now_ms)
    if last_offset > state.map_end_offset and not is_empty:
        snapshot_offsets = segments.base_offsets[-2:]
        for segment in segments.between(state.map_end_offset, last_offset):
            start = max(segment.base_offset, state.map_end_offset, log_start_offset)
            state.map_end_offset = start
            if segment.base_offset in snapshot_offsets:
                state.take_snapshot()
            found = segment.find_batch(start)
            if found is not None:
                batches = segment.log.batches(found.position)
                state.replay(pair for pair in batches if pair[1].last_offset < last_offset)
    state.map_end_offset = last_offset
    state.take_snapshot()


def snapshot_empty_state(state: ProducerState, segments: LogSegments, last_offset: int) -> None:
    """A log without any snapshot after a clean shutdown never had producers: nothing to replay."""
    for offset in (*segments.base_offsets[-2:], last_offset):
        state.map_end_offset = offset
        state.take_snapshot()
