"""Statistics of the segments of a partition."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import add
from pathlib import Path

from broker.errors import CorruptRecord
from broker.records.batch import Batch
from broker.records.layout import CURRENT_MAGIC, NO_TIMESTAMP
from broker.records.record import RecordColumns
from kctl.cli.times import iso_time
from kctl.dump.reading.files import DumpFile
from kctl.dump.reading.readers import batches_within, corrupt_batch, open_records
from kctl.dump.rows.log_rows import Row, View
from kctl.dump.stats.distinct import DistinctCounter


@dataclass
class CodecStats:
    """The batches of one codec."""

    batches: int = 0
    records: int = 0
    stored_bytes: int = 0
    """Size of the batches in the file, including headers."""
    record_bytes: int = 0
    """Size of the decompressed records."""

    @property
    def ratio(self) -> float | None:
        """Bytes of records per stored byte."""
        return round(self.record_bytes / self.stored_bytes, 2) if self.stored_bytes else None


@dataclass
class Span:
    """Minimum, maximum, sum and count of numbers."""

    smallest: int | None = None
    largest: int | None = None
    total: int = 0
    count: int = 0

    def add(self, numbers: Iterable[int]) -> None:
        """Add numbers."""
        values = list(numbers)
        if values:
            low, high = min(values), max(values)
            self.smallest = low if self.smallest is None else min(low, self.smallest)
            self.largest = high if self.largest is None else max(high, self.largest)
            self.total += sum(values)
            self.count += len(values)

    def row(self) -> Row:
        """For JSON."""
        mean = round(self.total / self.count, 1) if self.count else None
        return {"min": self.smallest, "mean": mean, "max": self.largest}

    def __str__(self) -> str:
        row = self.row()
        return f"{row['min']} / {row['mean']} / {row['max']}" if self.count else ""


@dataclass
class LogStats:
    """Statistics of the segments of one directory.

    Only batches that match the filters are counted. Missing offsets count as gaps, both between
    batches and inside them.
    """

    directory: Path
    segments: int = 0
    stored_bytes: int = 0
    codecs: dict[str, CodecStats] = field(default_factory=dict)
    formats: Counter[int] = field(default_factory=Counter)
    offsets: Span = field(default_factory=Span)
    times: Span = field(default_factory=Span)
    batch_sizes: Span = field(default_factory=Span)
    record_sizes: Span = field(default_factory=Span)
    size_bits: Counter[int] = field(default_factory=Counter)
    keys: DistinctCounter = field(default_factory=DistinctCounter)
    null_keys: int = 0
    tombstones: int = 0
    with_headers: int = 0
    gaps: int = 0
    missing_offsets: int = 0
    control_batches: int = 0
    transactional_batches: int = 0
    bad_crc_batches: int = 0
    producer_ids: set[int] = field(default_factory=set)
    _expected_offset: int | None = None
    """The expected offset of the next record; for a new segment its base offset."""

    def add_segment(self, file: DumpFile, view: View) -> None:
        """Add a segment; CorruptRecord at bytes that are not a batch, after counting all before."""
        self.segments += 1
        records = open_records(file.path)
        self.stored_bytes += records.size
        if self._expected_offset is None:
            self._expected_offset = file.base_offset
        for position, batch in batches_within(records, view.max_bytes):
            view.on_position(position)
            if view.filters.is_beyond(batch.header):
                return
            if view.filters.may_contain(batch.header):
                self._add(file.path, position, batch, view)
            else:
                self._expected_offset = batch.next_offset

    def _add(self, path: Path, position: int, batch: Batch, view: View) -> None:
        try:
            columns = batch.columns()
        except CorruptRecord as error:
            view.on_problem(corrupt_batch(path, position, error))
            return
        finally:
            self._add_batch(batch)
        self._add_records(batch, columns)

    def _add_batch(self, batch: Batch) -> None:
        header = batch.header
        self.formats[header.magic] += 1
        self.batch_sizes.add([batch.size_in_bytes])
        self.control_batches += header.is_control
        self.transactional_batches += header.is_transactional
        self.bad_crc_batches += not batch.is_crc_valid()
        if header.has_producer_id:
            self.producer_ids.add(header.producer_id)

    def _add_records(self, batch: Batch, columns: RecordColumns) -> None:
        codec = self.codecs.setdefault(batch.codec.name.lower(), CodecStats())
        codec.batches += 1
        codec.records += len(columns)
        codec.stored_bytes += batch.size_in_bytes
        codec.record_bytes += len(columns.data)
        self.offsets.add(columns.offsets)
        self._add_gaps(batch, columns)
        if batch.is_control:
            return
        self.times.add(time for time in columns.timestamps if time != NO_TIMESTAMP)
        keys = columns.keys()
        self.keys.add({key for key in keys if key is not None})
        self.null_keys += keys.count(None)
        self.tombstones += sum(length < 0 for length in columns.value_lengths)
        self.with_headers += sum(count > 0 for count in columns.header_counts)
        sizes = list(map(add, _sizes(columns.key_lengths), _sizes(columns.value_lengths)))
        self.record_sizes.add(sizes)
        self.size_bits.update(map(int.bit_length, sizes))

    def _add_gaps(self, batch: Batch, columns: RecordColumns) -> None:
        expected = self._expected_offset or 0
        for offset in columns.offsets:
            self._add_gap(offset - expected)
            expected = offset + 1
        if batch.magic >= CURRENT_MAGIC:  # compaction keeps the last offset of a batch
            self._add_gap(batch.next_offset - expected)
            expected = batch.next_offset
        self._expected_offset = expected

    def _add_gap(self, missing: int) -> None:
        if missing > 0:
            self.gaps += 1
            self.missing_offsets += missing

    @property
    def batches(self) -> int:
        """Number of batches."""
        return self.batch_sizes.count

    @property
    def records(self) -> int:
        """Number of records, including control records."""
        return self.offsets.count

    def row(self) -> Row:
        """All statistics, with stable field names."""
        return {
            "type": "stats",
            "directory": str(self.directory),
            "segments": self.segments,
            "bytes": self.stored_bytes,
            "batches": self.batches,
            "records": self.records,
            "formats": {str(magic): count for magic, count in sorted(self.formats.items())},
            "first_offset": self.offsets.smallest,
            "last_offset": self.offsets.largest,
            "gaps": self.gaps,
            "missing_offsets": self.missing_offsets,
            "first_timestamp": self.times.smallest,
            "first_time": iso_time(self.times.smallest),
            "last_timestamp": self.times.largest,
            "last_time": iso_time(self.times.largest),
            "codecs": {name: _codec_row(codec) for name, codec in sorted(self.codecs.items())},
            "batch_bytes": self.batch_sizes.row(),
            "record_bytes": self.record_sizes.row(),
            "null_keys": self.null_keys,
            "distinct_keys": self.keys.count,
            "distinct_keys_exact": self.keys.is_exact,
            "tombstones": self.tombstones,
            "records_with_headers": self.with_headers,
            "control_batches": self.control_batches,
            "transactional_batches": self.transactional_batches,
            "producers": len(self.producer_ids),
            "bad_crc_batches": self.bad_crc_batches,
            "histogram": list(self._histogram()),
        }

    def _histogram(self) -> Iterator[Row]:
        """Records by size of key and value, in powers of two, from the smallest to the largest."""
        if self.size_bits:
            for bits in range(min(self.size_bits), max(self.size_bits) + 1):
                first = 2 ** (bits - 1) if bits else 0
                count = self.size_bits[bits]
                yield {"from_bytes": first, "to_bytes": max(2**bits - 1, 0), "records": count}


def _sizes(lengths: Iterable[int]) -> Iterator[int]:
    return (length if length > 0 else 0 for length in lengths)


def _codec_row(codec: CodecStats) -> Row:
    return {
        "batches": codec.batches,
        "records": codec.records,
        "stored_bytes": codec.stored_bytes,
        "record_bytes": codec.record_bytes,
        "ratio": codec.ratio,
    }
