"""The line of every record, as kafka-dump-log prints it: the loop that decides how fast that is.

A segment has millions of records, so a batch is printed in one go: each part of the line becomes a
column (offsets, timestamps, sizes, keys, …), the columns are interleaved by slice assignment into
one list, and one join makes the text. Numbers are not formatted one by one: offsets and sequences
that follow each other come out of blocks of a thousand, timestamps and sizes out of what was
formatted before. Keys and values are passed on as bytes, since valid UTF-8 is printed as it is;
only a batch where some are not is gone over again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from broker.records.batch import Batch, increment_sequence
from broker.records.control import (
    ControlRecordType,
    control_type,
    read_end_transaction_marker,
)
from broker.records.decoder import read_headers
from broker.records.layout import CURRENT_MAGIC, MAX_INT32, NO_SEQUENCE, TimestampType
from broker.records.legacy import read_crcs
from broker.records.record import RecordColumns
from kctl.dump.decoders import Decoder
from kctl.dump.text import is_utf_8, java_utf_8

TIMESTAMP_TYPES: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
_BLOCK: Final = 1000
_LAST_DIGITS: Final = tuple(b"%03d" % number for number in range(_BLOCK))
_MAX_REMEMBERED: Final = 100_000

# One part of every line of a batch.
Part = Iterable[bytes]


@dataclass(frozen=True)
class RecordStyle:
    """What is printed of a record."""

    contents: bool = False
    """Key and value (`--print-data-log`)."""
    metadata: bool = True
    """Offset, time, sizes (all but `--skip-record-metadata`)."""
    decoder: Decoder | None = None


class _Remembered(dict[int, bytes]):
    """Texts made once per number; forgotten when they are too many."""

    def __init__(self, make: Callable[[int], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> bytes:
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        text = self[number] = self._make(number)
        return text


_decimals = _Remembered(lambda number: b"%d" % number)
_key_sizes = _Remembered(lambda size: b" keySize: %d" % size)
_value_sizes = _Remembered(lambda size: b" valueSize: %d" % size)
_key_heads = _Remembered(lambda size: b" key: " if size >= 0 else b"")
_lone_key_heads = _Remembered(lambda size: b"| key: " if size >= 0 else b"")
_value_heads = _Remembered(lambda size: b" payload: " if size >= 0 else b"")


@lru_cache(maxsize=16)
def _block(thousands: int) -> tuple[bytes, ...]:
    if not thousands:
        return tuple([b"%d" % number for number in range(_BLOCK)])
    head = b"%d" % thousands
    return tuple([head + digits for digits in _LAST_DIGITS])


def consecutive_decimals(first: int, count: int) -> list[bytes]:
    """The decimals of `count` numbers from `first`, none of them negative."""
    numbers: list[bytes] = []
    while len(numbers) < count:
        thousands, start = divmod(first + len(numbers), _BLOCK)
        numbers += _block(thousands)[start : start + count - len(numbers)]
    return numbers


def is_consecutive(offsets: Sequence[int]) -> bool:
    """Whether each offset is one above the one before."""
    return not offsets or list(offsets) == list(range(offsets[0], offsets[0] + len(offsets)))


def record_lines(batch: Batch, columns: RecordColumns, style: RecordStyle, is_dense: bool) -> bytes:
    """The lines of all records of a batch; DecodeError where a decoder cannot go on.

    `is_dense` is what `is_consecutive` says of the offsets.
    """
    count = len(columns)
    if not count:
        return b""
    parts = _metadata(batch, columns, is_dense) if style.metadata else []
    if batch.is_control and style.metadata:
        parts.append(_control_records(batch, columns))
    elif not batch.is_control and style.contents:
        return _with_contents(parts, columns, style)
    return _interleave(parts, count)


def _with_contents(parts: list[Part], columns: RecordColumns, style: RecordStyle) -> bytes:
    if style.decoder:
        return _interleave(parts + _decoded(columns, style), len(columns))
    keys = [
        _heads(style, columns.key_lengths),
        _spans(columns, columns.key_starts, columns.key_lengths),
    ]
    values = [
        map(_value_heads.__getitem__, columns.value_lengths),
        _spans(columns, columns.value_starts, columns.value_lengths),
    ]
    flat = [list(part) for part in (*parts, *keys, *values)]
    text = _interleave(flat, len(columns))
    if is_utf_8(text):
        return text
    flat[-3], flat[-1] = list(map(java_utf_8, flat[-3])), list(map(java_utf_8, flat[-1]))
    return _interleave(flat, len(columns))


def _interleave(parts: Sequence[Part], count: int) -> bytes:
    """The first part of every line, the second of every line, …: as `count` whole lines."""
    width = len(parts) + 1
    flat = [b"\n"] * (count * width)
    for index, part in enumerate(parts):
        flat[index::width] = part
    return b"".join(flat)


def _spans(columns: RecordColumns, starts: Sequence[int], lengths: Sequence[int]) -> Part:
    """The bytes at the spans; null, of length -1, gives none."""
    data = columns.data
    return [data[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def _heads(style: RecordStyle, key_lengths: Sequence[int]) -> Part:
    heads = _key_heads if style.metadata else _lone_key_heads
    return map(heads.__getitem__, key_lengths)


def _metadata(batch: Batch, columns: RecordColumns, is_dense: bool) -> list[Part]:
    count = len(columns)
    timestamp_type = TIMESTAMP_TYPES[batch.header.timestamp_type]
    return [
        [b"| offset: "] * count,
        _offsets(columns.offsets, is_dense),
        [f" {timestamp_type}: ".encode()] * count,
        map(_decimals.__getitem__, columns.timestamps),
        map(_key_sizes.__getitem__, columns.key_lengths),
        map(_value_sizes.__getitem__, columns.value_lengths),
        *_rest(batch, columns, is_dense),
    ]


def _offsets(offsets: Sequence[int], is_dense: bool) -> Part:
    if is_dense and offsets[0] >= 0:
        return consecutive_decimals(offsets[0], len(offsets))
    return [b"%d" % offset for offset in offsets]


def _rest(batch: Batch, columns: RecordColumns, is_dense: bool) -> list[Part]:
    """What only some formats have: checksums in 0 and 1, sequences and headers in 2."""
    if batch.magic < CURRENT_MAGIC:
        return [_checksums(batch)]
    return [*_sequences(batch, columns, is_dense), _headers(columns)]


def _checksums(batch: Batch) -> Part:
    """What formats 0 and 1 have for each record; the brace is Kafka's."""
    for stored, computed in read_crcs(batch.view):
        is_valid = b"true" if stored == computed else b"false"
        yield b" isValid: %b crc: %d}" % (is_valid, stored)


def _sequences(batch: Batch, columns: RecordColumns, is_dense: bool) -> list[Part]:
    count, header = len(columns), batch.header
    if header.base_sequence == NO_SEQUENCE:
        return [[b" sequence: -1"] * count]
    first = header.base_sequence + columns.offsets[0] - header.base_offset
    if is_dense and 0 <= first <= MAX_INT32 - count:
        return [[b" sequence: "] * count, consecutive_decimals(first, count)]
    deltas = (offset - header.base_offset for offset in columns.offsets)
    sequences = (increment_sequence(header.base_sequence, delta) for delta in deltas)
    return [[b" sequence: %d" % sequence for sequence in sequences]]


def _headers(columns: RecordColumns) -> Part:
    count = len(columns)
    if not any(columns.header_counts):
        return [b" headerKeys: []"] * count
    return [b" headerKeys: [%b]" % _header_keys(columns, index) for index in range(count)]


def _header_keys(columns: RecordColumns, index: int) -> bytes:
    start, count = columns.header_starts[index], columns.header_counts[index]
    return ",".join(key for key, _ in read_headers(columns.data, start, count)).encode()


def _control_records(batch: Batch, columns: RecordColumns) -> Part:
    """What control records say; their contents are not printed otherwise."""
    for key, value in zip(columns.keys(), columns.values(), strict=True):
        record_type = control_type(key)
        if record_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            marker = read_end_transaction_marker(key, value)
            epoch = marker.coordinator_epoch
            yield f" endTxnMarker: {record_type.name} coordinatorEpoch: {epoch}".encode()
        else:
            number = int.from_bytes((key or b"")[2:4], "big", signed=True)
            yield f" controlType: {record_type.name}({number})".encode()


def _decoded(columns: RecordColumns, style: RecordStyle) -> list[Part]:
    assert style.decoder  # noqa: S101 - the caller has looked
    words = style.decoder.kafka_words
    rows = zip(columns.offsets, columns.keys(), columns.values(), strict=True)
    decoded = [words(offset, key, value) for offset, key, value in rows]
    head = "" if style.metadata else "|"
    return [
        [b"" if key is None else f"{head} key: {key}".encode() for key, _ in decoded],
        [b"" if value is None else f" payload: {value}".encode() for _, value in decoded],
    ]
