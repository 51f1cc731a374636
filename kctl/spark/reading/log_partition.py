"""One partition in a log directory: its offsets, segments and aborted transactions.

Read-only. The files may be those of a running or crashed broker: indexes may be preallocated,
missing or wrong, and the last batch may be incomplete. Indexes are only used to read less; every
position taken from an index is checked.
"""

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from broker.errors import CorruptRecord
from broker.log.checkpoints import (
    CorruptCheckpoint,
    EpochEntry,
    read_epochs,
    read_meta_properties,
    read_partition_metadata,
)
from broker.log.file_records import FileRecords
from broker.log.layout import (
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    parse_offset_file,
)
from broker.log.offset_index import OffsetIndex
from broker.log.producer_snapshot import read_snapshot
from broker.model import TopicPartition
from broker.records.batch import Batch, BatchHeader, check_crc
from kctl.dump.reading.readers import (
    count_offset_entries,
    last_time_entry,
    open_offset_index,
    open_records,
    open_time_index,
    open_txn_index,
)
from kctl.spark.planning.plan import AbortedSpan

_WALK_DISTANCE_BYTES = 4 * 1024 * 1024


class _WrittenEntries(Sequence[tuple[int, int]]):
    """The entries of an offset index file, each read when it is needed."""

    def __init__(self, index: OffsetIndex) -> None:
        self._index = index
        self._count = count_offset_entries(index)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, slot: Any) -> Any:
        return self._index.entry(slot if slot >= 0 else slot + self._count)


@dataclass(frozen=True)
class Segment:
    """One segment's file, and where the next segment begins."""

    path: Path
    base_offset: int
    next_base_offset: int | None
    """Base offset of the next segment; None for the last one."""

    @cached_property
    def records(self) -> FileRecords:
        """The batches; the size is that of the first access."""
        return open_records(self.path)

    @cached_property
    def entries(self) -> Sequence[tuple[int, int]]:
        """(offset, position) of the offset index, or of some headers where it has no entries.

        Not checked: the caller must check the batch at a position.
        """
        try:
            index = open_offset_index(self.path.with_suffix(OFFSET_INDEX), self.base_offset)
        except OSError:
            return list(self._walk())
        return _WrittenEntries(index) if count_offset_entries(index) else list(self._walk())

    def _walk(self) -> Iterator[tuple[int, int]]:
        """Sparse entries from the batch headers, up to the first damage."""
        wanted = _WALK_DISTANCE_BYTES
        with contextlib.suppress(CorruptRecord):
            for position, header in self.records.headers():
                if position >= wanted:
                    yield header.last_offset, position
                    wanted = position + _WALK_DISTANCE_BYTES

    def headers_from(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Headers from the batch that contains `offset` on, even if the index is wrong."""
        slot = bisect_right(self.entries, offset, key=lambda entry: entry[0]) - 1
        position = self.entries[slot][1] if slot >= 0 else 0
        try:
            # Raises if there is no batch at the position, or one that begins after `offset`.
            found = self.records.search_for_offset(offset, position, offset)
        except CorruptRecord:
            found = self.records.search_for_offset(offset, 0)
        return self.records.headers(found.position if found else self.records.size)

    def entry_beyond(self, position: int) -> tuple[int, int] | None:
        """The first index entry at or after a position, if any."""
        slot = bisect_left(self.entries, position, key=lambda entry: entry[1])
        return self.entries[slot] if slot < len(self.entries) else None

    def end_offset(self) -> int:
        """The offset after the last whole batch."""
        end, start = self.base_offset, 0
        if self.entries and self.sound_batch(self.entries[-1][1]) is not None:
            start = self.entries[-1][1]
        for _, header in self.records.headers(start):
            end = header.next_offset
        return end

    def sound_batch(self, position: int) -> Batch | None:
        """The batch at a position taken from an index; None if there is no undamaged batch."""
        if not 0 <= position < self.records.size:
            return None
        try:
            _, batch = next(self.records.batches(position))
            check_crc(batch)
        except (CorruptRecord, StopIteration):
            return None
        return batch

    @property
    def max_indexed_timestamp(self) -> int | None:
        """The largest timestamp of a closed segment; None if it is not known."""
        if self.next_base_offset is None:
            return None
        try:
            index = open_time_index(self.path.with_suffix(TIME_INDEX), self.base_offset)
        except OSError:
            return None
        entry = last_time_entry(index)
        return entry.timestamp if entry else None

    def release(self) -> None:
        """Close the files, which the next access opens again: there may be many segments."""
        self.__dict__.pop("records", None)
        self.__dict__.pop("entries", None)


class LogPartition:
    """The log of one partition in one directory."""

    def __init__(self, directory: Path, partition: TopicPartition, log_start_offset: int) -> None:
        self.directory = directory
        self.partition = partition
        bases = sorted(_offsets_of(directory, LOG))
        self.segments = [
            Segment(directory / f"{base:020d}{LOG}", base, following)
            for base, following in zip_longest(bases, bases[1:])
        ]
        self.log_start_offset = max(log_start_offset, bases[0] if bases else 0)

    @cached_property
    def log_end_offset(self) -> int:
        """The offset after the last whole batch."""
        if not self.segments:
            return self.log_start_offset
        end = self.segments[-1].end_offset()
        self.segments[-1].release()
        return max(self.log_start_offset, end)

    @cached_property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction; the log end offset without one.

        Computed from the newest producer snapshot and the batch headers after it, as in a broker.
        """
        offset, open_since = self._newest_snapshot()
        for header in self._headers(offset):
            if header.is_control:
                open_since.pop(header.producer_id, None)
            elif header.is_transactional:
                open_since.setdefault(header.producer_id, header.base_offset)
        return min([*open_since.values(), self.log_end_offset])

    def _newest_snapshot(self) -> tuple[int, dict[int, int]]:
        """The newest valid snapshot: (offset, first offset of each open transaction)."""
        for offset in sorted(_offsets_of(self.directory, SNAPSHOT), reverse=True):
            with contextlib.suppress(CorruptRecord, OSError):
                entries = read_snapshot(self.directory / f"{offset:020d}{SNAPSHOT}")
                return offset, {
                    entry.producer_id: entry.current_txn_first_offset
                    for entry in entries
                    if entry.current_txn_first_offset >= 0
                }
        return self.log_start_offset, {}

    def _headers(self, offset: int) -> Iterator[BatchHeader]:
        """The headers of all batches that end at `offset` or later."""
        for segment in self.segments:
            if segment.next_base_offset is None or segment.next_base_offset > offset:
                for _, header in segment.headers_from(offset):
                    yield header
                segment.release()

    @cached_property
    def cluster_id(self) -> str | None:
        """The cluster id in meta.properties, if any."""
        with contextlib.suppress(CorruptCheckpoint, OSError):
            properties = read_meta_properties(self.directory.parent)
            return properties.cluster_id if properties else None
        return None

    @cached_property
    def topic_id(self) -> str | None:
        """The topic id in partition.metadata, if any."""
        with contextlib.suppress(CorruptCheckpoint, OSError):
            topic_id = read_partition_metadata(self.directory)
            return str(topic_id) if topic_id else None
        return None

    @cached_property
    def epochs(self) -> list[EpochEntry]:
        """The leader epochs, oldest first; empty without a leader epoch checkpoint."""
        with contextlib.suppress(CorruptCheckpoint, OSError):
            return read_epochs(self.directory / LEADER_EPOCH_CHECKPOINT)
        return []

    def epoch_end_offset(self, epoch: int) -> int:
        """The end offset of a leader epoch; -1 if it is newer than all epochs of the log."""
        if epoch > self.epochs[-1].epoch:
            return -1
        following = (each.start_offset for each in self.epochs if each.epoch > epoch)
        return next(following, self.log_end_offset)

    def aborted(self, first_offset: int, end_offset: int) -> list[AbortedSpan]:
        """Aborted transactions that overlap the offsets."""
        return [
            span
            for span in self._all_aborted
            if span.last_offset >= first_offset and span.first_offset < end_offset
        ]

    @cached_property
    def _all_aborted(self) -> list[AbortedSpan]:
        return [
            AbortedSpan(txn.producer_id, txn.first_offset, txn.last_offset)
            for base in sorted(_offsets_of(self.directory, TXN_INDEX))
            for txn in open_txn_index(self.directory / f"{base:020d}{TXN_INDEX}")
        ]

    def offset_at_time(self, timestamp: int) -> int:
        """The offset of the first record at `timestamp` or later; else the log end offset."""
        for segment in self.segments:
            largest = segment.max_indexed_timestamp
            if largest is not None and largest < timestamp:
                continue
            for position, header in segment.records.headers():
                if header.max_timestamp >= timestamp and header.next_offset > self.log_start_offset:
                    found = self._in_batch(segment, position, timestamp)
                    if found is not None:
                        return found
        return self.log_end_offset

    def _in_batch(self, segment: Segment, position: int, timestamp: int) -> int | None:
        _, batch = next(segment.records.batches(position))
        columns = batch.columns()
        times = zip(columns.offsets, columns.timestamps, strict=True)
        wanted = (o for o, time in times if time >= timestamp and o >= self.log_start_offset)
        return next(wanted, None)


def _offsets_of(directory: Path, kind: str) -> list[int]:
    """The offsets in the names of files of this kind, without .deleted, .cleaned and .swap."""
    names = (parse_offset_file(path.name) for path in directory.iterdir())
    return [name[0] for name in names if name and name[1] == kind and not name[2]]
