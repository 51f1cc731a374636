"""Compaction of one log: keep the latest record of every key (Kafka's Cleaner).

    clean          │ dirty                        │ uncleanable
    …──────────────┼──────────────────────────────┼───────────────────────────→
                   first dirty offset             first uncleanable offset

 1. Read the dirty section and build a map of the latest offset of every key, until the map is full.
 2. Group neighbouring segments from the start of the log to the end of the map, so that small ones
    are merged, and copy the retained records of each group into a `.cleaned` segment.
 3. Flush that segment and swap it with the group (`PartitionLog.replace_segments`).

Runs in a thread concurrently with appends and reads: it uses inactive segments only, and the swap
is a few renames.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

from broker.errors import CorruptRecord
from broker.log.cleaned_transactions import CleanedTransactions
from broker.log.config import CleanerConfig
from broker.log.layout import CLEANED, MAX_RELATIVE_OFFSET
from broker.log.offset_map import BYTES_PER_ENTRY, OffsetMap
from broker.log.partition_log import PartitionLog
from broker.log.record_filter import Kept, LastRecord, RecordFilter
from broker.log.segment import LogSegment, indexed_batches
from broker.records.batch import Batch

logger = logging.getLogger(__name__)


class CleaningAborted(Exception):
    """The log will be truncated or deleted; the work so far is discarded."""


@dataclass(slots=True)
class CleanerStats:
    """What one cleaning read and wrote."""

    bytes_read: int = 0
    messages_read: int = 0
    bytes_written: int = 0
    messages_written: int = 0
    map_messages: int = 0
    map_utilization: float = 0.0


class Cleaner:
    """Cleans one log at a time.

    Field `_map`: that of the log being cleaned, sized for its dirty section.
    Field `_check_aborted`: called often; raises CleaningAborted to stop.
    """

    def __init__(self, config: CleanerConfig, check_aborted: Callable[[], None]) -> None:
        self._max_slots = config.dedupe_buffer_size // BYTES_PER_ENTRY
        self._load_factor = config.io_buffer_load_factor
        if self._max_slots * self._load_factor < 1:
            raise ValueError("log.cleaner.dedupe.buffer.size is too small for a single key")
        self._map = OffsetMap(BYTES_PER_ENTRY)
        self._max_keys = 0
        # Kafka splits the buffer between reading and writing.
        self._chunk_bytes = config.io_buffer_size // 2
        self._check_aborted = check_aborted

    def clean(
        self, log: PartitionLog, first_dirty_offset: int, first_uncleanable_offset: int
    ) -> tuple[int, CleanerStats]:
        """Clean to the end of the map; returns the new first dirty offset and statistics."""
        stats = CleanerStats()
        now_ms = log.environment.clock.now_ms()
        before = log.segments.between(0, first_dirty_offset)
        retention_ms = log.config.delete_retention_ms
        old_horizon_ms = before[-1].last_modified_ms - retention_ms if before else 0
        self._make_map(first_uncleanable_offset - first_dirty_offset)
        self._build_map(log, first_dirty_offset, first_uncleanable_offset, stats)
        end_offset = self._map.latest_offset + 1
        transactions = CleanedTransactions()
        for group in group_segments(log, end_offset, first_uncleanable_offset):
            self._clean_group(log, group, transactions, (now_ms, old_horizon_ms), stats)
        stats.map_utilization = self._map.utilization
        self._map = OffsetMap(BYTES_PER_ENTRY)  # release the memory until the next cleaning
        return end_offset, stats

    def _make_map(self, dirty_offsets: int) -> None:
        """A map for as many keys as there can be, limited by the buffer."""
        slots = min(int(dirty_offsets / self._load_factor) + 2, self._max_slots)
        self._map = OffsetMap(slots * BYTES_PER_ENTRY)
        self._max_keys = int(slots * self._load_factor)

    # --- 1. the map ----------------------------------------------------------------------------

    def _build_map(self, log: PartitionLog, start: int, end: int, stats: CleanerStats) -> None:
        dirty = log.segments.between(start, end)
        transactions = CleanedTransactions()
        transactions.add_aborted(log.collect_aborted_txns(start, end))
        ends = [segment.base_offset for segment in dirty[1:]] + [end]
        for segment, segment_end in zip(dirty, ends, strict=True):
            if not self._map_segment(log, segment, start, transactions, stats):
                return
            self._map.latest_offset = segment_end - 1

    def _map_segment(
        self,
        log: PartitionLog,
        segment: LogSegment,
        start: int,
        transactions: CleanedTransactions,
        stats: CleanerStats,
    ) -> bool:
        """Add the keys of a segment; False if the map became full."""
        with log.lock:
            position = segment.position_of(start)
        for _, batch in segment.log.batches(position):
            self._check_aborted()
            is_dropped = transactions.can_discard(batch) or batch.is_control
            if not is_dropped and not self._map_batch(batch, start, stats):
                return False
            if batch.last_offset >= start:
                self._map.latest_offset = batch.last_offset
        return True

    def _map_batch(self, batch: Batch, start: int, stats: CleanerStats) -> bool:
        columns = batch.columns()
        for offset, key in zip(columns.offsets, columns.keys(), strict=True):
            if key is not None and offset >= start:
                if self._map.size >= self._max_keys:
                    return False
                self._map.put(key, offset)
            stats.map_messages += 1
        return True

    # --- 2. the copy ---------------------------------------------------------------------------

    def _clean_group(
        self,
        log: PartitionLog,
        group: list[LogSegment],
        transactions: CleanedTransactions,
        times_ms: tuple[int, int],
        stats: CleanerStats,
    ) -> None:
        env = log.environment
        base_offset = group[0].base_offset
        cleaned = LogSegment(
            log.directory, base_offset, log.config, env.fs, env.clock, suffix=CLEANED
        )
        try:
            with log.storing("clean"):
                cleaned.create()
                transactions.cleaned_index = cleaned.indexes.txn
                for index, segment in enumerate(group):
                    following = group[index + 1 : index + 2]
                    end = following[0].base_offset if following else segment.read_next_offset()
                    transactions.add_aborted(log.collect_aborted_txns(segment.base_offset, end))
                    rules = self._filter(log, segment, transactions, times_ms)
                    self._copy(segment, cleaned, rules, stats)
                self._finish(cleaned, group[-1])
        except (CleaningAborted, CorruptRecord):
            cleaned.delete()
            raise
        log.replace_segments(cleaned, group)
        logger.info(
            "cleaned partition=%s base_offset=%s segments=%s size=%s",
            log.partition,
            base_offset,
            len(group),
            cleaned.size,
        )

    def _filter(
        self,
        log: PartitionLog,
        segment: LogSegment,
        transactions: CleanedTransactions,
        times_ms: tuple[int, int],
    ) -> RecordFilter:
        now_ms, old_horizon_ms = times_ms
        return RecordFilter(
            self._map,
            transactions,
            {entry.producer_id: LastRecord.of(entry) for entry in log.active_producers},
            now_ms,
            log.config.delete_retention_ms,
            segment.last_modified_ms > old_horizon_ms,
        )

    def _copy(
        self, source: LogSegment, cleaned: LogSegment, rules: RecordFilter, stats: CleanerStats
    ) -> None:
        """Append the retained batches, in chunks of the source's size."""
        chunk: list[Kept] = []
        chunk_start = 0
        for position, batch in source.log.batches():
            self._check_aborted()
            end = position + batch.size_in_bytes
            if end - chunk_start > self._chunk_bytes:
                _append(cleaned, chunk, stats)
                chunk, chunk_start = [], position
            stats.bytes_read += batch.size_in_bytes
            stats.messages_read += max(batch.header.records_count, 0)
            kept = rules.keep(batch)
            if kept is not None:
                chunk.append(kept)
        _append(cleaned, chunk, stats)

    @staticmethod
    def _finish(cleaned: LogSegment, last: LogSegment) -> None:
        """Finish the segment like a rolled one, flush it, and copy the last source's mtime."""
        cleaned.on_become_inactive()
        cleaned.flush()
        modified_ns = last.log.path.stat().st_mtime_ns
        os.utime(cleaned.log.path, ns=(modified_ns, modified_ns))


def _append(cleaned: LogSegment, chunk: list[Kept], stats: CleanerStats) -> None:
    if not chunk:
        return
    data = b"".join(kept.data for kept in chunk)
    headers = [header for kept in chunk for header in kept.headers]
    cleaned.append([data], len(data), indexed_batches(headers))
    stats.bytes_written += len(data)
    stats.messages_written += sum(kept.num_records for kept in chunk)


def group_segments(
    log: PartitionLog, end_offset: int, first_uncleanable_offset: int
) -> list[list[LogSegment]]:
    """Groups of neighbours below `end_offset` that fit one segment: bytes, indexes, offsets."""
    segments = log.segments.between(0, end_offset)
    ends = [segment.base_offset for segment in segments[1:]] + [first_uncleanable_offset]
    groups: list[list[LogSegment]] = []
    for segment, end in zip(segments, ends, strict=True):
        if groups and _fits(log, groups[-1], segment, end - 1):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _fits(log: PartitionLog, group: list[LogSegment], segment: LogSegment, last: int) -> bool:
    together = [*group, segment]
    max_index_bytes = log.config.segment_index_bytes
    with log.lock:
        return (
            sum(part.size for part in together) <= log.config.segment_bytes
            and sum(part.indexes.offset.size_in_bytes for part in together) <= max_index_bytes
            and sum(part.indexes.time.size_in_bytes for part in together) <= max_index_bytes
            and (not segment.size or last - group[0].base_offset <= MAX_RELATIVE_OFFSET)
        )
