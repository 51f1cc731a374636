"""The output of kafka-dump-log 3.9, line by line, for each kind of file it supports.

Where Kafka's tool ends with a stack trace, an exception with the reason is raised; the lines before
it are the same. Messages that Kafka prints to stderr at the end are collected in `Afterwards`.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from broker.errors import CorruptRecord
from broker.log.producer_snapshot import SnapshotEntry, read_snapshot
from broker.protocol.errors import DecodeError
from broker.records.batch import Batch, increment_sequence
from broker.records.layout import (
    CURRENT_MAGIC,
    HEADER_SIZE_UP_TO_MAGIC,
)
from kctl.dump.kafka_text.indexes import dump_offset_index, dump_time_index
from kctl.dump.kafka_text.options import NOT_FOUND, Afterwards, KafkaOptions, note
from kctl.dump.kafka_text.records import TIMESTAMP_TYPES, RecordLines, RecordStyle
from kctl.dump.reading.files import KRAFT_SNAPSHOT, DumpFile, FileKind
from kctl.dump.reading.readers import (
    batches_within,
    corrupt_batch,
    open_records,
    open_txn_index,
)


def dump_file(file: DumpFile, options: KafkaOptions, afterwards: Afterwards) -> Iterator[bytes]:
    """The text that Kafka prints to stdout for one file, in chunks of whole lines.

    CorruptRecord, DecodeError or OSError where Kafka's tool fails with an exception.
    """
    yield f"Dumping {file.path}\n".encode()
    if file.kind is FileKind.LOG:
        yield from _dump_log(file, options, afterwards)
        return
    lines: Iterator[str]
    if file.kind is FileKind.OFFSET_INDEX:
        lines = dump_offset_index(file, options, afterwards)
    elif file.kind is FileKind.TIME_INDEX:
        lines = dump_time_index(file, options, afterwards)
    elif file.kind is FileKind.TXN_INDEX:
        lines = _dump_txn_index(file)
    else:
        lines = map(_snapshot_line, read_snapshot(file.path))
    yield from (f"{line}\n".encode() for line in lines)


# --- .log ------------------------------------------------------------------------------------


def _heading(file: DumpFile) -> bytes:
    if found := KRAFT_SNAPSHOT.fullmatch(file.path.name):
        return f"Snapshot end offset: {int(found[1] or 0)}, epoch: {int(found[2] or 0)}\n".encode()
    return f"Log starting offset: {file.base_offset}\n".encode()


def _dump_log(file: DumpFile, options: KafkaOptions, afterwards: Afterwards) -> Iterator[bytes]:
    yield _heading(file)
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
        # Kafka ignores trailing bytes that are too short for a header.
        if records.size - end > HEADER_SIZE_UP_TO_MAGIC:
            raise
    if end < records.size and options.max_bytes is None:
        yield f"Found {records.size - end} invalid bytes at the end of {file.path.name}\n".encode()


def _record_lines(batch: Batch, style: RecordStyle, order: "_OffsetOrder") -> bytes:
    if batch.records_count == 0:  # an empty batch: the cleaner keeps the last batch of a producer
        return b""
    lines = RecordLines(batch, style)
    order.note(lines.offsets, lines.is_dense)
    return lines.text()


class _OffsetOrder:
    """Notes offsets that are not consecutive."""

    def __init__(self, file: DumpFile, afterwards: Afterwards) -> None:
        self._file = file
        self._pairs = afterwards.non_consecutive
        self._last = NOT_FOUND

    def note(self, offsets: Sequence[int], is_dense: bool) -> None:
        """Check the offsets of the next batch."""
        if self._last == NOT_FOUND:
            self._last = offsets[0] - 1
        if offsets[0] != self._last + 1 or not is_dense:
            for first, second in pairwise([self._last, *offsets]):
                if second != first + 1:
                    note(self._pairs, self._file, first, second)
        self._last = offsets[-1]


def batch_line(position: int, batch: Batch) -> bytes:
    """The line of a batch, with its CRC checked; CorruptRecord if its codec is unknown."""
    header = batch.header
    codec = batch.codec.name.lower()
    time = f"{TIMESTAMP_TYPES[header.timestamp_type]}: {header.max_timestamp}"
    is_valid = _bool(batch.is_crc_valid())
    return (
        f"{_batch_head(batch)} position: {position} {time} size: {batch.size_in_bytes} "
        f"magic: {header.magic} compresscodec: {codec} crc: {header.crc} isvalid: {is_valid}\n"
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
    if entry.last_offset < 0:  # a producer that has written only transaction markers
        return line
    first_sequence = increment_sequence(entry.last_sequence, -entry.offset_delta)
    return (
        f"{line}firstSequence: {first_sequence} lastSequence: {entry.last_sequence} "
        f"lastOffset: {entry.last_offset} offsetDelta: {entry.offset_delta} "
        f"timestamp: {entry.timestamp}"
    )
