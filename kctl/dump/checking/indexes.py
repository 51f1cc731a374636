"""Compares indexes with their segment while it is read.

Indexes and batches are sorted, so one pass over the segment meets each entry at the batch it must
point to; only the next entry is kept in memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from broker.log.layout import OFFSET_INDEX, TIME_INDEX, TXN_INDEX, offset_file
from broker.log.markers import read_end_txn_marker
from broker.log.offset_index import OffsetIndex, OffsetPosition
from broker.log.time_index import TimeIndex, TimestampOffset
from broker.records.batch import Batch
from broker.records.layout import NO_TIMESTAMP
from kctl.dump.checking.findings import REBUILD, Finding
from kctl.dump.reading.readers import (
    offset_entries,
    open_offset_index,
    open_time_index,
    open_txn_index,
    time_entries,
)

Report = Callable[[Finding], None]


@dataclass(frozen=True)
class SegmentIndexes:
    """The checks of the index files of one segment."""

    followers: tuple["OffsetIndexCheck | TimeIndexCheck | TxnIndexCheck", ...]

    def see(self, position: int, batch: Batch) -> None:
        """Check the entries for the next batch."""
        for follower in self.followers:
            follower.see(position, batch)

    def end(self, *, is_active: bool) -> None:
        """The end of the segment; an index of the active segment may be incomplete."""
        for follower in self.followers:
            follower.end(is_active=is_active)


def segment_indexes(directory: Path, base_offset: int, report: Report) -> SegmentIndexes:
    """The checks of the existing index files; a missing one is reported."""
    followers: list[OffsetIndexCheck | TimeIndexCheck | TxnIndexCheck] = []
    path = offset_file(directory, base_offset, OFFSET_INDEX)
    if path.exists():
        followers.append(OffsetIndexCheck(open_offset_index(path, base_offset), report))
    else:
        report(Finding("index", path, None, "missing", "nothing: it is rebuilt at the next start"))
    path = offset_file(directory, base_offset, TIME_INDEX)
    if path.exists():
        followers.append(TimeIndexCheck(open_time_index(path, base_offset), report))
    else:
        report(
            Finding("timeindex", path, None, "missing", "nothing: it is rebuilt at the next start")
        )
    path = offset_file(directory, base_offset, TXN_INDEX)
    if path.exists():
        followers.append(TxnIndexCheck(path, report))
    return SegmentIndexes(tuple(followers))


class OffsetIndexCheck:
    """Every entry must have the position and last offset of a batch; both must increase."""

    def __init__(self, index: OffsetIndex, report: Report) -> None:
        self._index = index
        self._report = report
        self._entries = self._sound_entries()
        self._slot = -1
        self._next = next(self._entries, None)

    def _sound_entries(self) -> Iterator[OffsetPosition]:
        """The entries in order; entries out of order are reported and skipped."""
        index = self._index
        if index.has_odd_length:
            size = index.path.stat().st_size
            self._find(size, f"{size} bytes are not a whole number of entries")
        last = OffsetPosition(index.base_offset - 1, -1)
        for slot, entry in enumerate(offset_entries(index)):
            self._slot = slot
            if entry.offset <= last.offset or entry.position <= last.position:
                self._find(None, f"entry {slot} ({_pair(entry)}) is not above {_pair(last)}")
                continue
            last = entry
            yield entry

    def see(self, position: int, batch: Batch) -> None:
        """Compare the entry that must point to this batch, if any."""
        while self._next is not None and self._next.position <= position:
            if self._next.position < position:
                self._find(None, f"no batch begins at position {self._next.position}")
            elif self._next.offset != batch.last_offset:
                self._find(
                    None,
                    f"the batch at position {position} ends with offset {batch.last_offset}, "
                    f"the entry says {self._next.offset}",
                )
            self._next = next(self._entries, None)

    def end(self, *, is_active: bool) -> None:
        """Report remaining entries, which point beyond the last batch."""
        del is_active
        while self._next is not None:
            self._find(None, f"no batch begins at position {self._next.position}")
            self._next = next(self._entries, None)

    def _find(self, position: int | None, problem: str) -> None:
        at = self._slot * self._index.ENTRY.size if position is None else position
        self._report(Finding("index", self._index.path, max(at, 0), problem, REBUILD))


def _pair(entry: OffsetPosition) -> str:
    return f"offset {entry.offset} position {entry.position}"


class TimeIndexCheck:
    """Every entry must be the largest timestamp so far, with the last offset of its batch."""

    def __init__(self, index: TimeIndex, report: Report) -> None:
        self._index = index
        self._report = report
        self._largest = NO_TIMESTAMP
        self._last = TimestampOffset(NO_TIMESTAMP, index.base_offset - 1)
        self._slot = -1
        self._entries = self._sound_entries()
        self._next = next(self._entries, None)

    def _sound_entries(self) -> Iterator[TimestampOffset]:
        index = self._index
        if index.has_odd_length:
            self._find(f"{index.path.stat().st_size} bytes are not a whole number of entries")
        for slot, entry in enumerate(time_entries(index)):
            self._slot = slot
            if entry.timestamp <= self._last.timestamp or entry.offset < self._last.offset:
                self._find(f"entry {slot} {tuple(entry)} is not above {tuple(self._last)}")
                continue
            self._last = entry
            yield entry

    def see(self, position: int, batch: Batch) -> None:
        """Compare the entries up to this batch."""
        del position
        self._largest = max(self._largest, batch.max_timestamp)
        while self._next is not None and self._next.offset <= batch.last_offset:
            timestamp, offset = self._next
            if offset != batch.last_offset:
                self._find(f"no batch ends with offset {offset}")
            elif timestamp != batch.max_timestamp or timestamp != self._largest:
                self._find(
                    f"the largest timestamp up to offset {offset} is {self._largest}, "
                    f"the entry says {timestamp}"
                )
            self._next = next(self._entries, None)

    def end(self, *, is_active: bool) -> None:
        """The last entry of a closed segment must have its largest timestamp."""
        while self._next is not None:
            self._find(f"no batch ends with offset {self._next.offset}")
            self._next = next(self._entries, None)
        if not is_active and self._largest > self._last.timestamp:
            self._find(
                f"ends with timestamp {self._last.timestamp}, the segment with {self._largest}"
            )

    def _find(self, problem: str) -> None:
        position = max(self._slot, 0) * self._index.ENTRY.size
        self._report(Finding("timeindex", self._index.path, position, problem, REBUILD))


class TxnIndexCheck:
    """Every aborted transaction must end with an abort marker of its producer in the segment."""

    def __init__(self, path: Path, report: Report) -> None:
        self._path = path
        self._report = report
        self._markers: set[tuple[int, int]] = set()

    def see(self, position: int, batch: Batch) -> None:
        """Remember abort markers."""
        del position
        if batch.is_control:
            marker = read_end_txn_marker(batch)
            if marker is not None and not marker.is_commit:
                self._markers.add((batch.header.producer_id, batch.last_offset))

    def end(self, *, is_active: bool) -> None:
        """Compare the markers with the index; CorruptRecord if the file cannot be read."""
        del is_active
        for txn in open_txn_index(self._path):
            if (txn.producer_id, txn.last_offset) not in self._markers:
                problem = (
                    f"producer {txn.producer_id} has no abort marker at offset {txn.last_offset}"
                )
                self._report(Finding("txnindex", self._path, None, problem, REBUILD))
