"""The line of each record as kafka-dump-log prints it; the hot loop of dump-log.

A segment has millions of records, so the text of a batch is built at once: each part of the line is
a column (offsets, timestamps, sizes, keys, …), the columns are interleaved into one list by slice
assignment, and one join makes the text. Numbers are not formatted one by one: consecutive offsets
and sequences come from blocks of a thousand, timestamps and sizes from a cache. Keys and values are
copied as bytes, since valid UTF-8 is printed unchanged; only batches with invalid UTF-8 are
processed again.
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
from broker.records.layout import CURRENT_MAGIC, MAX_INT32, NO_SEQUENCE, TimestampType
from broker.records.legacy import read_crcs
from kctl.dump.reading.decoders import Decoder
from kctl.dump.reading.kraft_records import control_words
from kctl.views.text import is_utf_8, java_utf_8

TIMESTAMP_TYPES: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
_BLOCK: Final = 1000
_LAST_DIGITS: Final = tuple(b"%03d" % number for number in range(_BLOCK))
_MAX_REMEMBERED: Final = 10_000

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
    """A cache of formatted numbers; cleared when it is full."""

    def __init__(self, make: Callable[[int], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> bytes:
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        text = self[number] = self._make(number)
        return text


_key_sizes = _Remembered(lambda size: b" keySize: %d" % size)
_value_sizes = _Remembered(lambda size: b" valueSize: %d" % size)
_key_heads = _Remembered(lambda size: b" key: " if size >= 0 else b"")
_lone_key_heads = _Remembered(lambda size: b"| key: " if size >= 0 else b"")
_value_heads = _Remembered(lambda size: b" payload: " if size >= 0 else b"")
_times = {
    kind: _Remembered(lambda time, name=name: f" {name}: {time}".encode())  # type: ignore[misc]
    for kind, name in TIMESTAMP_TYPES.items()
}


@lru_cache(maxsize=16)
def _block(thousands: int) -> tuple[bytes, ...]:
    if not thousands:
        return tuple([b"%d" % number for number in range(_BLOCK)])
    head = b"%d" % thousands
    return tuple([head + digits for digits in _LAST_DIGITS])


def consecutive_decimals(first: int, count: int) -> list[bytes]:
    """`count` formatted numbers from `first`, none of them negative."""
    numbers: list[bytes] = []
    while len(numbers) < count:
        thousands, start = divmod(first + len(numbers), _BLOCK)
        numbers += _block(thousands)[start : start + count - len(numbers)]
    return numbers


def is_consecutive(offsets: Sequence[int]) -> bool:
    """Whether the offsets are consecutive."""
    return tuple(offsets) == tuple(range(offsets[0], offsets[0] + len(offsets)))


class RecordLines:
    """The records of one non-empty batch as columns; `text` gives their lines.

    `offsets`: the offsets of the records. `is_dense`: whether they are consecutive.
    """

    def __init__(self, batch: Batch, style: RecordStyle) -> None:
        records = batch.record_tuples()
        self.offsets, self._timestamps, self._keys, self._values, self._headers = zip(
            *records, strict=True
        )
        self.is_dense = is_consecutive(self.offsets)
        self._key_sizes = _sizes(self._keys)
        self._value_sizes = _sizes(self._values)
        self._count = len(records)
        self._batch = batch
        self._style = style

    def text(self) -> bytes:
        """The lines of all records; DecodeError if a decoder fails."""
        style, is_control = self._style, self._batch.is_control
        parts = self._metadata() if style.metadata else []
        if is_control and style.metadata:
            parts.append(self._control_records())
        if is_control or not style.contents:
            return self._interleave(parts)
        if style.decoder:
            return self._interleave(parts + self._decoded(style.decoder))
        return self._with_contents(parts)

    def _with_contents(self, parts: list[Part]) -> bytes:
        heads = _key_heads if self._style.metadata else _lone_key_heads
        columns = [
            *parts,
            list(map(heads.__getitem__, self._key_sizes)),
            _present(self._keys),
            list(map(_value_heads.__getitem__, self._value_sizes)),
            _present(self._values),
        ]
        text = self._interleave(columns)
        if is_utf_8(text):
            return text
        columns[-3], columns[-1] = map(java_utf_8, columns[-3]), map(java_utf_8, columns[-1])
        return self._interleave(columns)

    def _interleave(self, parts: Sequence[Part]) -> bytes:
        """Interleave the columns to lines."""
        width = len(parts) + 1
        flat = [b"\n"] * (self._count * width)
        for index, part in enumerate(parts):
            flat[index::width] = part
        return b"".join(flat)

    def _metadata(self) -> list[Part]:
        times = _times[self._batch.header.timestamp_type]
        return [
            [b"| offset: "] * self._count,
            self._offset_decimals(),
            list(map(times.__getitem__, self._timestamps)),
            list(map(_key_sizes.__getitem__, self._key_sizes)),
            list(map(_value_sizes.__getitem__, self._value_sizes)),
            *self._rest(),
        ]

    def _offset_decimals(self) -> Part:
        if self.is_dense and self.offsets[0] >= 0:
            return consecutive_decimals(self.offsets[0], self._count)
        return [b"%d" % offset for offset in self.offsets]

    def _rest(self) -> list[Part]:
        """Parts of some formats only: checksums in 0 and 1, sequences and headers in 2."""
        if self._batch.magic < CURRENT_MAGIC:
            return [_checksums(self._batch)]
        has_headers = any(self._headers)
        if self._batch.header.base_sequence == NO_SEQUENCE and not has_headers:
            return [[b" sequence: -1 headerKeys: []"] * self._count]
        if not has_headers:
            return [*self._sequences(), [b" headerKeys: []"] * self._count]
        keys = (",".join(key for key, _ in headers) for headers in self._headers)
        return [*self._sequences(), [f" headerKeys: [{text}]".encode() for text in keys]]

    def _sequences(self) -> list[Part]:
        header = self._batch.header
        if header.base_sequence == NO_SEQUENCE:
            return [[b" sequence: -1"] * self._count]
        first = header.base_sequence + self.offsets[0] - header.base_offset
        if self.is_dense and 0 <= first <= MAX_INT32 - self._count:
            return [[b" sequence: "] * self._count, consecutive_decimals(first, self._count)]
        deltas = (offset - header.base_offset for offset in self.offsets)
        sequences = (increment_sequence(header.base_sequence, delta) for delta in deltas)
        return [[b" sequence: %d" % sequence for sequence in sequences]]

    def _control_records(self) -> Part:
        return list(map(_control_record, self._keys, self._values))

    def _decoded(self, decoder: Decoder) -> list[Part]:
        words = list(map(decoder.kafka_words, self.offsets, self._keys, self._values))
        head = "" if self._style.metadata else "|"
        return [
            [b"" if key is None else f"{head} key: {key}".encode() for key, _ in words],
            [b"" if value is None else f" payload: {value}".encode() for _, value in words],
        ]


def _sizes(data: Sequence[bytes | None]) -> list[int]:
    """The lengths; -1 for null."""
    if None in data:
        return [-1 if item is None else len(item) for item in data]
    return list(map(len, data))  # type: ignore[arg-type]


def _present(data: Sequence[bytes | None]) -> Part:
    """The bytes; empty for null."""
    return [item or b"" for item in data] if None in data else data  # type: ignore[return-value]


def _checksums(batch: Batch) -> Part:
    """The checksum part of formats 0 and 1; Kafka prints the brace."""
    for stored, computed in read_crcs(batch.view):
        is_valid = b"true" if stored == computed else b"false"
        yield b" isValid: %b crc: %d}" % (is_valid, stored)


def _control_record(key: bytes | None, value: bytes | None) -> bytes:
    """The text of a control record; its key and value are not printed."""
    record_type = control_type(key)
    if record_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        epoch = read_end_transaction_marker(key, value).coordinator_epoch
        return f" endTxnMarker: {record_type.name} coordinatorEpoch: {epoch}".encode()
    if (words := control_words(record_type, value)) is not None:
        return f" {words}".encode()
    number = int.from_bytes((key or b"")[2:4], "big", signed=True)
    return f" controlType: {record_type.name}({number})".encode()
