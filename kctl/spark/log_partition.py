"""One partition as it lies in a log directory: where it starts and ends, and what was aborted.

Read-only, and content with what a broker that runs, died or was killed has left: an index may be
longer than its entries, missing or wrong, the last batch may be torn. The indexes only ever save
reading; every position they give is checked by the walk of headers that follows.
"""

import contextlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from pathlib import Path
from struct import Struct

from broker.errors import CorruptRecord
from broker.log.file_records import FileRecords
from broker.log.layout import (
    LOG,
    OFFSET_ENTRY,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_ENTRY,
    TIME_INDEX,
    TXN_INDEX,
    parse_offset_file,
)
from broker.log.producer_snapshot import read_snapshot
from broker.model import TopicPartition
from broker.records.batch import BatchHeader
from kctl.dump.readers import open_records, open_txn_index
from kctl.spark.plan import AbortedSpan

_WALK_DISTANCE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Segment:
    """One segment's file and what its neighbours say of it."""

    path: Path
    base_offset: int
    next_base_offset: int | None
    """Where the segment after this one begins; None for the last."""

    @cached_property
    def records(self) -> FileRecords:
        """The batches; the size is that of the first look."""
        return open_records(self.path)

    @cached_property
    def index(self) -> list[tuple[int, int]]:
        """(offset, position) of the offset index; made anew where it is missing or unsound."""
        entries = [
            (self.base_offset + relative, position)
            for relative, position in _entries(self.path.with_suffix(OFFSET_INDEX), OFFSET_ENTRY)
        ]
        is_sound = all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(entries))
        if entries and is_sound:
            return [each for each in entries if each[1] < self.records.size]
        return list(self._walk())

    def _walk(self) -> Iterator[tuple[int, int]]:
        """Entries for an index, far apart, from the headers; they end where the log is damaged."""
        wanted = _WALK_DISTANCE_BYTES
        with contextlib.suppress(CorruptRecord):
            for position, header in self.records.headers():
                if position >= wanted:
                    yield header.last_offset, position
                    wanted = position + _WALK_DISTANCE_BYTES

    def position_before(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`."""
        slot = bisect_right(self.index, offset, key=lambda entry: entry[0]) - 1
        return self.index[slot][1] if slot >= 0 else 0

    def headers_from(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Headers from the batch that holds `offset` on, without trust in the index."""
        try:
            found = self.records.search_for_offset(offset, self.position_before(offset), offset)
        except CorruptRecord:
            found = self.records.search_for_offset(offset, 0)
        return self.records.headers(found.position if found else self.records.size)

    @property
    def max_indexed_timestamp(self) -> int | None:
        """The largest timestamp of a segment that is complete; None where that is not known."""
        times = list(_entries(self.path.with_suffix(TIME_INDEX), TIME_ENTRY))
        return times[-1][0] if times and self.next_base_offset is not None else None


def _entries(path: Path, entry: Struct) -> Iterator[tuple[int, int]]:
    """The entries of an index up to the zeros that one not closed has behind them."""
    try:
        data = path.read_bytes().rstrip(b"\0")
    except OSError:
        return
    # The last entry may end in zeros of its own.
    length = -(-len(data) // entry.size) * entry.size
    yield from entry.iter_unpack(data.ljust(length, b"\0"))


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
        last = self.segments[-1]
        end = max(self.log_start_offset, last.base_offset)
        start = last.index[-1][0] if last.index else last.base_offset
        for _, header in last.headers_from(start):
            end = header.next_offset
        return end

    @cached_property
    def last_stable_offset(self) -> int:
        """Where the first transaction begins that has not ended; the log end if there is none.

        From the newest producer snapshot and the headers behind it, as a broker finds it too.
        """
        offset, open_since = self._newest_snapshot()
        for header in self._headers(offset):
            if header.is_control:
                open_since.pop(header.producer_id, None)
            elif header.is_transactional:
                open_since.setdefault(header.producer_id, header.base_offset)
        return min([*open_since.values(), self.log_end_offset])

    def _newest_snapshot(self) -> tuple[int, dict[int, int]]:
        """(offset, first offset of each open transaction there) of the last sound snapshot."""
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

    def aborted(self, first_offset: int, end_offset: int) -> list[AbortedSpan]:
        """Aborted transactions that reach into the offsets."""
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
        """The first offset whose record is of `timestamp` or later; the log end if none is."""
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
    """The offsets in the names of the files of this kind; those marked are not part of the log."""
    names = (parse_offset_file(path.name) for path in directory.iterdir())
    return [name[0] for name in names if name and name[1] == kind and not name[2]]
