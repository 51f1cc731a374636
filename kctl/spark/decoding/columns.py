"""Batches → Arrow, without an object per record.

`Batch.columns()` gives the positions of keys and values in the bytes of a batch. The positions of
many batches are turned into Arrow arrays by a few vector operations: the joined bytes of all
batches are treated as one binary array in which (other bytes, key, other bytes, value) repeat
record by record, so keys and values are every fourth element.
"""

from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from broker.records.batch import Batch
from broker.records.decoder import read_headers
from broker.records.layout import TimestampType
from broker.records.record import RecordColumns

HEADERS_TYPE: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPES: Final = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "timestamp_type": pa.string(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS_TYPE,
    "leader_epoch": pa.int32(),
    "producer_id": pa.int64(),
}
"""All columns, in the order in which they are written."""

DEFAULT_COLUMNS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
)

_TIMESTAMP_TYPES: Final = {
    TimestampType.NO_TIMESTAMP_TYPE: None,
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
_SPANS_PER_RECORD: Final = 4
_KEY_SPAN: Final = 1
_VALUE_SPAN: Final = 3
_ZERO: Final = pa.scalar(0, pa.int32())


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """The schema of these columns, with keys and values as bytes."""
    return pa.schema([(name, TYPES[name]) for name in columns])


class ColumnGatherer:
    """Collects records of one partition for an Arrow table.

    *Invariant*: the arrays have one element per record, `_data` one per batch. Positions are
    relative to the batch; `_bases` has the start of each record's batch in the joined bytes.
    """

    def __init__(self, topic: str, partition: int, columns: Sequence[str]) -> None:
        self.size_bytes = 0
        """Bytes of decompressed records gathered."""
        self._topic = topic
        self._partition = partition
        self._columns = tuple(columns)
        self._per_batch: list[tuple[int, Any, int, int]] = []
        """(records, timestamp type, leader epoch, producer id): the same within a batch."""
        self._data: list[bytes] = []
        self._offsets, self._timestamps = array("q"), array("q")
        self._key_starts, self._key_lengths = array("i"), array("i")
        self._value_starts, self._value_lengths = array("i"), array("i")
        self._header_starts, self._header_counts = array("i"), array("i")
        self._bases = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, batch: Batch, first_offset: int, end_offset: int) -> None:
        """Gather the records of `batch` that lie in the range."""
        columns = batch.columns()
        if not len(columns):
            return
        start, end = _within(columns.offsets, first_offset, end_offset)
        if start < end:
            self._gather(columns, slice(start, end), end - start == len(columns))
            header = batch.header
            kind = header.timestamp_type
            self._per_batch.append(
                (end - start, kind, header.partition_leader_epoch, header.producer_id)
            )

    def _gather(self, columns: RecordColumns, wanted: slice, is_whole: bool) -> None:
        def cut(values: "array[int]") -> "array[int]":
            return values if is_whole else values[wanted]

        self._offsets += cut(columns.offsets)
        self._timestamps += cut(columns.timestamps)
        self._key_starts += cut(columns.key_starts)
        self._key_lengths += cut(columns.key_lengths)
        self._value_starts += cut(columns.value_starts)
        self._value_lengths += cut(columns.value_lengths)
        self._header_starts += cut(columns.header_starts)
        self._header_counts += cut(columns.header_counts)
        self._bases += array("i", (self.size_bytes,)) * (wanted.stop - wanted.start)
        self._data.append(columns.data)
        self.size_bytes += len(columns.data)

    def table(self) -> pa.Table:
        """The collected records as an Arrow table."""
        spans = _Spans(
            b"".join(self._data),
            _int32(self._bases),
            (_int32(self._key_starts), _int32(self._key_lengths)),
            (_int32(self._value_starts), _int32(self._value_lengths)),
        )
        make: dict[str, Callable[[], Any]] = {
            "topic": lambda: self._constant(self._topic),
            "partition": lambda: self._constant(self._partition),
            "offset": lambda: _fixed(self._offsets, pa.int64()),
            "timestamp": lambda: _timestamps(_fixed(self._timestamps, TYPES["timestamp"])),
            "timestamp_type": lambda: self._repeated(1, _TIMESTAMP_TYPES.__getitem__),
            "key": spans.keys,
            "value": spans.values,
            "headers": lambda: self._headers(spans.data),
            "leader_epoch": lambda: self._repeated(2, _none_if_negative),
            "producer_id": lambda: self._repeated(3, _none_if_negative),
        }
        arrays = [make[name]() for name in self._columns]
        schema = arrow_schema(self._columns)
        return pa.Table.from_arrays(
            [column.cast(kind) for column, kind in zip(arrays, schema.types, strict=True)],
            schema=schema,
        )

    def _constant(self, value: object) -> pa.Array:
        return pa.repeat(pa.scalar(value), len(self))

    def _repeated(self, field: int, meaning: Callable[[Any], object]) -> pa.Array:
        """A value per batch, repeated for its records; usually it is the same for all batches."""
        values = {each[field] for each in self._per_batch}
        if len(values) == 1:
            value = meaning(values.pop())
            return pa.nulls(len(self)) if value is None else self._constant(value)
        runs = pa.array([meaning(each[field]) for each in self._per_batch])
        indices = chain.from_iterable(
            array("i", (index,)) * each[0] for index, each in enumerate(self._per_batch)
        )
        return runs.take(pa.array(indices, pa.int32()))

    def _headers(self, data: bytes) -> pa.Array:
        if not pc.any(_int32(self._header_counts).cast(pa.bool_())).as_py():
            return _empty_lists(len(self))
        rows = zip(self._bases, self._header_starts, self._header_counts, strict=True)
        return pa.array(
            [
                [{"key": key, "value": value} for key, value in read_headers(data, base + at, n)]
                for base, at, n in rows
            ],
            HEADERS_TYPE,
        )


class _Spans:
    """Keys and values of joined batches as elements of one binary array."""

    def __init__(
        self, data: bytes, bases: pa.Array, keys: tuple[Any, Any], values: tuple[Any, Any]
    ) -> None:
        self.data = data
        self._count = len(bases)
        self._key_lengths, self._value_lengths = keys[1], values[1]
        bounds = array("i", bytes(4)) * (self._count * _SPANS_PER_RECORD + 1)
        view = memoryview(bounds)
        for slot, (starts, lengths) in ((_KEY_SPAN, keys), (_VALUE_SPAN, values)):
            absolute = pc.add(starts, bases)
            ends = pc.add(absolute, pc.max_element_wise(lengths, _ZERO))
            view[slot::_SPANS_PER_RECORD] = memoryview(absolute.buffers()[1]).cast("i")
            view[slot + 1 :: _SPANS_PER_RECORD] = memoryview(ends.buffers()[1]).cast("i")
        self._array = pa.Array.from_buffers(
            pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
        )

    def keys(self) -> pa.Array:
        """The keys; null where a record has none."""
        return self._every_fourth(_KEY_SPAN, self._key_lengths)

    def values(self) -> pa.Array:
        """The values; null for tombstones."""
        return self._every_fourth(_VALUE_SPAN, self._value_lengths)

    def _every_fourth(self, first: int, lengths: pa.Array) -> pa.Array:
        indices = _numbers(self._count, _SPANS_PER_RECORD, first)
        present = pc.greater_equal(lengths, 0)
        if not pc.all(present).as_py():
            indices = pc.if_else(present, indices, pa.scalar(None, pa.int32()))
        return self._array.take(indices)


@lru_cache(maxsize=4)
def _numbers(count: int, step: int, first: int) -> pa.Array:
    """first, first + step, …: computed by Arrow, ten times as fast as from a Python range."""
    steps = pc.cumulative_sum(pa.repeat(pa.scalar(step, pa.int32()), count))
    return pc.add(steps, pa.scalar(first - step, pa.int32()))


def _empty_lists(count: int) -> pa.Array:
    """Empty lists, for records without headers, which is the usual case."""
    bounds = pa.py_buffer(bytes(4 * (count + 1)))
    none = pa.array([], HEADERS_TYPE.value_type)
    return pa.Array.from_buffers(HEADERS_TYPE, count, [None, bounds], children=[none])


def _within(offsets: "array[int]", first_offset: int, end_offset: int) -> tuple[int, int]:
    """The slice of elements in the range; offsets increase, so usually the ends decide."""
    if offsets[0] >= first_offset and offsets[-1] < end_offset:
        return 0, len(offsets)
    inside = [index for index, at in enumerate(offsets) if first_offset <= at < end_offset]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _fixed(values: "array[int]", kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _int32(values: "array[int]") -> pa.Array:
    return _fixed(values, pa.int32())


def _timestamps(values: pa.Array) -> pa.Array:
    """Null for -1, which is Kafka's NO_TIMESTAMP."""
    missing = pc.equal(values.cast(pa.int64()), -1)
    if not pc.any(missing).as_py():
        return values
    return pc.if_else(missing, pa.scalar(None, values.type), values)


def _none_if_negative(number: int) -> int | None:
    return None if number < 0 else number
