"""Batches and records of segments as rows, for tables and `-o json|jsonl|csv|yaml`.

Field names are part of the interface. Numbers are as Kafka stores them; times are in milliseconds
and in ISO 8601. Fields that a format or a record does not have are null.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from broker.errors import CorruptRecord
from broker.log.file_records import FileRecords
from broker.protocol.errors import DecodeError
from broker.records.batch import Batch, increment_sequence
from broker.records.control import control_type, read_end_transaction_marker
from broker.records.layout import CODEC_MASK, NO_SEQUENCE, Codec
from broker.records.record import Headers, RecordTuple
from kctl.cli.tables import Column
from kctl.cli.times import iso_time
from kctl.dump.kafka_text.records import TIMESTAMP_TYPES
from kctl.dump.reading.decoders import Decoder, Document, UnknownRecordType
from kctl.dump.reading.files import DumpFile
from kctl.dump.reading.filters import Filters
from kctl.dump.reading.readers import (
    batches_within,
    corrupt_batch,
    ignore,
    open_records,
)
from kctl.dump.rows.columns import BATCH_COLUMNS, RECORD_COLUMNS
from kctl.views.text import JSON, safe_text

Row = dict[str, Any]
_CODECS: Final = tuple(codec.name.lower() for codec in Codec)


@dataclass(frozen=True)
class View:
    """What to show of a segment."""

    records: bool = False
    filters: Filters = field(default_factory=Filters)
    decoder: Decoder | None = None
    max_bytes: int | None = None
    on_problem: Callable[[Exception], None] = ignore
    """Called for a batch whose records cannot be read; the next batches are still shown."""
    on_bad_crc: Callable[[str], None] = ignore
    """Called with a message for a batch that is shown although its CRC is wrong."""
    on_position: Callable[[int], None] = ignore
    """Called with the position in the file."""

    @property
    def columns(self) -> list[Column]:
        """The columns of the rows."""
        return RECORD_COLUMNS if self.records else BATCH_COLUMNS

    @property
    def name(self) -> str:
        """The field that `-o name` prints."""
        return "offset" if self.records else "base_offset"


# --- batches and records -----------------------------------------------------------------------


def log_rows(file: DumpFile, view: View) -> Iterator[Row]:
    """The batches or records of a segment that match `view`.

    CorruptRecord at bytes that are not a batch, after all rows before them.
    """
    records = open_records(file.path)
    end = 0
    for position, batch in batches_within(records, view.max_bytes):
        end = position + batch.size_in_bytes
        view.on_position(end)
        header = batch.header
        if view.filters.is_beyond(header):
            return
        if view.records:
            if view.filters.may_contain(header):
                yield from _record_rows(file, view, position, batch)
        elif view.filters.wants_batch(header) and _has_wanted_record(file, view, position, batch):
            _check_crc(file, view, position, batch)
            yield {"type": "batch", "file": str(file.path), **batch_row(position, batch)}
    _check_end(records, end, view)


def _check_crc(file: DumpFile, view: View, position: int, batch: Batch) -> None:
    if not batch.is_crc_valid():
        base, last = batch.header.base_offset, batch.header.last_offset
        view.on_bad_crc(f"{file.path} position {position}: bad crc, offsets {base} to {last}")


def _check_end(records: FileRecords, end: int, view: View) -> None:
    if end < records.size and view.max_bytes is None:
        raise CorruptRecord(
            f"{records.path} position {end}: "
            f"incomplete batch in the last {records.size - end} bytes"
        )


def batch_row(position: int, batch: Batch) -> Row:
    """A batch: its header, and whether its CRC is valid."""
    header = batch.header
    codec = header.attributes & CODEC_MASK
    is_valid = batch.is_crc_valid()
    flags = {
        "txn": header.is_transactional,
        "control": header.is_control,
        "bad-crc": not is_valid,
    }
    return {
        "position": position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": batch.records_count,
        "size": batch.size_in_bytes,
        "magic": header.magic,
        "codec": _CODECS[codec] if codec < len(_CODECS) else f"unknown-{codec}",
        "timestamp_type": TIMESTAMP_TYPES[header.timestamp_type],
        "base_timestamp": known(header.base_timestamp),
        "max_timestamp": known(header.max_timestamp),
        "max_time": iso_time(header.max_timestamp),
        "producer_id": known(header.producer_id),
        "producer_epoch": known(header.producer_epoch),
        "base_sequence": known(header.base_sequence),
        "last_sequence": known(header.last_sequence),
        "partition_leader_epoch": known(header.partition_leader_epoch),
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "crc": header.crc,
        "valid": is_valid,
        "flags": [flag for flag, is_set in flags.items() if is_set],
    }


def known(number: int) -> int | None:
    """None for -1, which Kafka stores for a missing number."""
    return None if number == -1 else number


def _has_wanted_record(file: DumpFile, view: View, position: int, batch: Batch) -> bool:
    """Whether a record matches the filters; records are read only if the header is not enough."""
    if not view.filters.needs_records:
        return True
    return any(map(view.filters.wants_record, _records(file, view, position, batch)))


def _records(file: DumpFile, view: View, position: int, batch: Batch) -> list[RecordTuple]:
    """The records; none, and a reported problem, if they cannot be read."""
    try:
        return batch.record_tuples()
    except CorruptRecord as error:
        view.on_problem(corrupt_batch(file.path, position, error))
        return []


def _record_rows(file: DumpFile, view: View, position: int, batch: Batch) -> Iterator[Row]:
    wanted = view.filters.wants_record
    shared = {"type": "record", "file": str(file.path)}
    damaged = [] if batch.is_crc_valid() else ["bad-crc"]
    if records := _records(file, view, position, batch):  # else already reported
        _check_crc(file, view, position, batch)
    for record in records:
        if wanted(record):
            row = _record_row(batch, record, view.decoder)
            yield {**shared, **row, "flags": [*row["flags"], *damaged]}


def _record_row(batch: Batch, record: RecordTuple, decoder: Decoder | None) -> Row:
    offset, timestamp, key, value, headers = record
    header = batch.header
    sequence = NO_SEQUENCE
    if header.base_sequence != NO_SEQUENCE:
        sequence = increment_sequence(header.base_sequence, offset - header.base_offset)
    return {
        "offset": offset,
        "timestamp": known(timestamp),
        "time": iso_time(timestamp),
        "timestamp_type": TIMESTAMP_TYPES[header.timestamp_type],
        **_contents(batch, key, value, decoder),
        "headers": _header_rows(headers),
        "key_size": None if key is None else len(key),
        "value_size": None if value is None else len(value),
        "batch_base_offset": header.base_offset,
        "codec": batch.codec.name.lower(),
        "producer_id": known(header.producer_id),
        "producer_epoch": known(header.producer_epoch),
        "sequence": known(sequence),
        "partition_leader_epoch": known(header.partition_leader_epoch),
        "transactional": header.is_transactional,
        "control": header.is_control,
        "flags": ["txn"] * header.is_transactional + ["control"] * header.is_control,
    }


def _contents(batch: Batch, key: bytes | None, value: bytes | None, decoder: Decoder | None) -> Row:
    """Key and value, each with its encoding."""
    if batch.is_control:
        return _named_contents("control", *_control_documents(key, value))
    if decoder:
        try:
            return _named_contents(JSON, *decoder.documents(key, value))
        except (DecodeError, UnknownRecordType):
            pass  # not a record of the internal topic: shown like any other
    row: Row = {}
    for name, data in (("key", key), ("value", value)):
        text, encoding = (None, None) if data is None else safe_text(data)
        row |= {name: text, f"{name}_encoding": encoding}
    return row


def _named_contents(encoding: str, key: object, value: object) -> Row:
    return {
        "key": key,
        "key_encoding": encoding if key is not None else None,
        "value": value,
        "value_encoding": encoding if value is not None else None,
    }


def _control_documents(
    key: bytes | None, value: bytes | None
) -> tuple[Document | None, Document | None]:
    try:
        kind = control_type(key).name
        marker = read_end_transaction_marker(key, value)
    except CorruptRecord:
        return {"control_type": "UNKNOWN"}, None
    return {"control_type": kind}, {"coordinator_epoch": marker.coordinator_epoch}


def _header_rows(headers: Headers) -> list[Row]:
    rows = []
    for key, value in headers:
        text, encoding = (None, None) if value is None else safe_text(value)
        rows.append({"key": key, "value": text, "value_encoding": encoding})
    return rows
