"""Line for line what kafka-dump-log 3.9 prints, for each kind of file it knows.

Where Kafka's tool dies with a stack trace this one raises an exception that says what is wrong; the
lines before it are the same. What Kafka keeps for the end (and prints to stderr) is collected in
`Afterwards`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from broker.errors import CorruptRecord
from broker.log.file_records import FileRecords
from broker.log.index import Index
from broker.log.layout import LOG, OFFSET_INDEX
from broker.log.offset_index import OffsetIndex
from broker.log.producer_snapshot import SnapshotEntry, read_snapshot
from broker.log.time_index import TimeIndex
from broker.protocol.errors import DecodeError
from broker.records.batch import Batch, increment_sequence
from broker.records.layout import (
    CODEC_MASK,
    CURRENT_MAGIC,
    HEADER_SIZE_UP_TO_MAGIC,
    NO_TIMESTAMP,
)
from kctl.dump.files import DumpFile, FileKind
from kctl.dump.java_order import string_hash, table_order
from kctl.dump.kafka_records import TIMESTAMP_TYPES, RecordLines, RecordStyle
from kctl.dump.readers import (
    batches_within,
    corrupt_batch,
    ignore,
    open_offset_index,
    open_records,
    open_time_index,
    open_txn_index,
)

_CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_NOT_FOUND: Final = -1

Pairs = dict[Path, list[tuple[int, int]]]


@dataclass(frozen=True)
class KafkaOptions:
    """The options of kafka-dump-log that change what it prints."""

    style: RecordStyle | None = None
    """How records are printed; None for batches only."""
    verify_index_only: bool = False
    index_sanity_check: bool = False
    max_message_bytes: int = 5 * 1024 * 1024
    max_bytes: int | None = None
    on_position: Callable[[int], None] = ignore
    """Hears how far in a segment the reading is."""


@dataclass
class Afterwards:
    """What Kafka says on stderr after all files: lists of pairs of numbers by file."""

    index_mismatches: Pairs = field(default_factory=dict)
    time_mismatches: Pairs = field(default_factory=dict)
    out_of_order_times: Pairs = field(default_factory=dict)
    offsets_not_found: Pairs = field(default_factory=dict)
    non_consecutive: Pairs = field(default_factory=dict)
    on_problem: Callable[[Exception], None] = ignore
    """Hears of a batch whose records cannot be read; Kafka's tool ends there, we go on."""

    def lines(self) -> Iterator[str]:
        """In Kafka's order; some of its lists are printed from their end."""
        for path, pairs in _by_file(self.index_mismatches):
            yield f"Mismatches in :{path}"
            yield from (f"  Index offset: {a}, log offset: {b}" for a, b in reversed(pairs))
        for path, pairs in _by_file(self.time_mismatches):
            yield f"Found timestamp mismatch in :{path}"
            yield from (f"  Index timestamp: {a}, log timestamp: {b}" for a, b in pairs)
        for path, pairs in _by_file(self.out_of_order_times):
            yield f"Found out of order timestamp in :{path}"
            yield from (
                f"  Index timestamp: {a}, Previously indexed timestamp: {b}" for a, b in pairs
            )
        for _, pairs in _by_file(self.offsets_not_found):
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {a}, found log offset: {b}" for a, b in pairs)
        for path, pairs in _by_file(self.non_consecutive):
            yield f"Non-consecutive offsets in {path}"
            yield from (f"  {a} is followed by {b}" for a, b in reversed(pairs))


def _by_file(pairs: Pairs) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """The lists in the order in which Kafka's tool goes through them."""
    lists = {str(path): found for path, found in pairs.items()}
    for path in table_order([[path] for path in lists], string_hash):
        yield path, lists[path]


def _note(pairs: Pairs, file: DumpFile, first: int, second: int) -> None:
    pairs.setdefault(file.path.absolute(), []).append((first, second))


def dump_file(file: DumpFile, options: KafkaOptions, afterwards: Afterwards) -> Iterator[bytes]:
    """Everything Kafka prints to stdout for one file, in pieces of whole lines.

    CorruptRecord, DecodeError or OSError where Kafka's tool would die.
    """
    yield f"Dumping {file.path}\n".encode()
    if file.kind is FileKind.LOG:
        yield from _dump_log(file, options, afterwards)
        return
    lines: Iterator[str]
    if file.kind is FileKind.OFFSET_INDEX:
        lines = _dump_offset_index(file, options, afterwards)
    elif file.kind is FileKind.TIME_INDEX:
        lines = _dump_time_index(file, options, afterwards)
    elif file.kind is FileKind.TXN_INDEX:
        lines = _dump_txn_index(file)
    else:
        lines = map(_snapshot_line, read_snapshot(file.path))
    yield from (f"{line}\n".encode() for line in lines)


# --- .log ------------------------------------------------------------------------------------


def _dump_log(file: DumpFile, options: KafkaOptions, afterwards: Afterwards) -> Iterator[bytes]:
    yield f"Log starting offset: {file.base_offset}\n".encode()
    records = open_records(file.path)
    order = _OffsetOrder(file, afterwards)
    end = 0
    try:
        for position, batch in batches_within(records, options.max_bytes):
            end = position + batch.size_in_bytes
            options.on_position(end)
            yield batch_line(position, batch)
            if options.style:
                try:
                    yield _record_lines(batch, options.style, order)
                except (CorruptRecord, DecodeError) as error:
                    afterwards.on_problem(corrupt_batch(file.path, position, error))
    except CorruptRecord:
        # A tail too short for a header is not looked at by Kafka.
        if records.size - end > HEADER_SIZE_UP_TO_MAGIC:
            raise
    if end < records.size and options.max_bytes is None:
        yield f"Found {records.size - end} invalid bytes at the end of {file.path.name}\n".encode()


def _record_lines(batch: Batch, style: RecordStyle, order: "_OffsetOrder") -> bytes:
    if batch.records_count == 0:  # what the cleaner left of a producer's last batch
        return b""
    lines = RecordLines(batch, style)
    order.note(lines.offsets, lines.is_dense)
    return lines.text()


class _OffsetOrder:
    """Notes where the offset of a record is not one above that of the record before."""

    def __init__(self, file: DumpFile, afterwards: Afterwards) -> None:
        self._file = file
        self._pairs = afterwards.non_consecutive
        self._last = _NOT_FOUND

    def note(self, offsets: Sequence[int], is_dense: bool) -> None:
        """Look at the offsets of the next batch."""
        if self._last == _NOT_FOUND:
            self._last = offsets[0] - 1
        if offsets[0] != self._last + 1 or not is_dense:
            for first, second in pairwise([self._last, *offsets]):
                if second != first + 1:
                    _note(self._pairs, self._file, first, second)
        self._last = offsets[-1]


def batch_line(position: int, batch: Batch) -> bytes:
    """The line of a batch, its crc checked."""
    header = batch.header
    codec = header.attributes & CODEC_MASK
    name = _CODEC_NAMES[codec] if codec < len(_CODEC_NAMES) else batch.codec.name
    time = f"{TIMESTAMP_TYPES[header.timestamp_type]}: {header.max_timestamp}"
    is_valid = _bool(batch.is_crc_valid())
    return (
        f"{_batch_head(batch)} position: {position} {time} size: {batch.size_in_bytes} "
        f"magic: {header.magic} compresscodec: {name} crc: {header.crc} isvalid: {is_valid}\n"
    ).encode()


def _batch_head(batch: Batch) -> str:
    header = batch.header
    if header.magic < CURRENT_MAGIC:
        return f"offset: {header.last_offset}"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
        f"count: {header.records_count} baseSequence: {header.base_sequence} "
        f"lastSequence: {header.last_sequence} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {_bool(header.is_transactional)} "
        f"isControl: {_bool(header.is_control)} "
        f"deleteHorizonMs: {_optional_long(header.delete_horizon_ms)}"
    )


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


# --- .index and .timeindex ---------------------------------------------------------------------


def _dump_offset_index(
    file: DumpFile, options: KafkaOptions, afterwards: Afterwards
) -> Iterator[str]:
    records = open_records(file.sibling(LOG))
    index = open_offset_index(file.path, file.base_offset)
    if not index.entries:
        yield f"{file.path} is empty."
        return
    if options.index_sanity_check:
        _check_sanity(index, index.last_entry.offset)
        yield f"{file.path} passed sanity check."
        return
    for slot in range(index.entries):
        entry = index.entry(slot)
        if slot and entry.offset == index.base_offset:  # zeros, as a crash leaves them
            return
        last_offset = _batch_at(records, entry.position, options.max_message_bytes).last_offset
        if last_offset != entry.offset:
            _note(afterwards.index_mismatches, file, entry.offset, last_offset)
        if not options.verify_index_only:
            yield f"offset: {entry.offset} position: {entry.position}"


def _check_sanity(index: Index, last_offset: int) -> None:
    """The check by which a starting broker decides whether an index must be built again."""
    if last_offset < index.base_offset:
        raise CorruptRecord(
            f"{index.path}: expected a last offset from {index.base_offset}, found {last_offset}"
        )
    if index.has_odd_length:
        raise CorruptRecord(
            f"{index.path}: expected entries of {index.ENTRY.size} bytes, "
            f"found {index.path.stat().st_size} bytes in all"
        )


def _batch_at(records: FileRecords, position: int, max_bytes: int) -> Batch:
    """The batch that an entry points to; CorruptRecord if it points to nothing."""
    if 0 <= position < records.size:
        for _, batch in records.batches(position):
            if batch.size_in_bytes <= max_bytes:
                return batch
            raise CorruptRecord(
                f"{records.path} position {position}: expected a batch of at most {max_bytes} "
                f"bytes (--max-message-size), found {batch.size_in_bytes}"
            )
    raise CorruptRecord(
        f"an index entry points to position {position} of {records.path}, "
        f"where no whole batch of its {records.size} bytes begins"
    )


def _dump_time_index(
    file: DumpFile, options: KafkaOptions, afterwards: Afterwards
) -> Iterator[str]:
    records = open_records(file.sibling(LOG))
    offset_index = open_offset_index(file.sibling(OFFSET_INDEX), file.base_offset)
    index = open_time_index(file.path, file.base_offset)
    if options.index_sanity_check:
        if index.entries:
            _check_time_sanity(index)
        yield f"{file.path} passed sanity check."
        return
    previous = NO_TIMESTAMP
    for slot in range(index.entries):
        entry = index.entry(slot)
        if slot and entry.offset == index.base_offset:
            return
        found = _find_batch(records, offset_index, entry.offset)
        if found is None or found.last_offset != entry.offset:
            last_offset = found.last_offset if found else _NOT_FOUND
            _note(afterwards.offsets_not_found, file, entry.offset, last_offset)
        else:
            timestamp = max([NO_TIMESTAMP, *found.columns().timestamps])
            if timestamp != entry.timestamp:
                _note(afterwards.time_mismatches, file, entry.timestamp, timestamp)
            if previous >= entry.timestamp:
                _note(afterwards.out_of_order_times, file, entry.timestamp, previous)
        if not options.verify_index_only:
            yield f"timestamp: {entry.timestamp} offset: {entry.offset}"
        previous = entry.timestamp


def _check_time_sanity(index: TimeIndex) -> None:
    first, last = index.entry(0), index.last_entry
    if last.timestamp < first.timestamp:
        raise CorruptRecord(
            f"{index.path}: expected a last timestamp from {first.timestamp}, "
            f"found {last.timestamp}"
        )
    _check_sanity(index, last.offset)


def _find_batch(records: FileRecords, index: OffsetIndex, offset: int) -> Batch | None:
    position = index.lookup(offset).position
    if position > records.size:
        return None
    batches = (batch for _, batch in records.batches(position))
    return next((batch for batch in batches if batch.last_offset >= offset), None)


# --- .txnindex and .snapshot -------------------------------------------------------------------


def _dump_txn_index(file: DumpFile) -> Iterator[str]:
    for txn in open_txn_index(file.path):
        yield (
            f"version: 0 producerId: {txn.producer_id} firstOffset: {txn.first_offset} "
            f"lastOffset: {txn.last_offset} lastStableOffset: {txn.last_stable_offset}"
        )


def _snapshot_line(entry: SnapshotEntry) -> str:
    txn = entry.current_txn_first_offset
    line = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
        f"coordinatorEpoch: {entry.coordinator_epoch} "
        f"currentTxnFirstOffset: {_optional_long(None if txn < 0 else txn)} "
        f"lastTimestamp: {entry.timestamp} "
    )
    if entry.last_offset < 0:  # a producer of which only markers are known
        return line
    first_sequence = increment_sequence(entry.last_sequence, -entry.offset_delta)
    return (
        f"{line}firstSequence: {first_sequence} lastSequence: {entry.last_sequence} "
        f"lastOffset: {entry.last_offset} offsetDelta: {entry.offset_delta} "
        f"timestamp: {entry.timestamp}"
    )
