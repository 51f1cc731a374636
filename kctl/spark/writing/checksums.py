"""Checksums of the records of a partition, column by column, whatever files they are in.

A column is a few streams of bytes: for keys and values the lengths (-1 for null) and the bytes, for
structs and lists those of their parts. The checksum of a stream is the CRC-32C of its bytes for all
records in offset order. CRCs of consecutive parts can be combined, so tasks compute theirs
independently, at the speed of the CRC instruction and without an object per record.
"""

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

Streams = dict[str, tuple[int, int]]
"""(CRC-32C, number of bytes) by stream."""

_POLYNOMIAL: Final = 0x82F63B78


def table_streams(table: pa.Table, before: Mapping[str, tuple[int, int]] | None = None) -> Streams:
    """The streams of a table whose rows are in offset order, appended to those `before` it."""
    streams: Streams = dict(before or {})
    for name, column in zip(table.column_names, table.columns, strict=True):
        for chunk in column.chunks:
            for stream, data in _streams(name, chunk):
                crc, size = streams.get(stream, (0, 0))
                streams[stream] = crc32c(data, crc), size + memoryview(data).nbytes
    return streams


def joined(first: Mapping[str, tuple[int, int]], then: Mapping[str, tuple[int, int]]) -> Streams:
    """The streams of the rows of `first`, followed by those of `then`."""
    return {
        name: _combine(first.get(name, (0, 0)), then.get(name, (0, 0)))
        for name in {**first, **then}
    }


def column_checksums(streams: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """One checksum per column, in hexadecimal."""
    columns: dict[str, int] = {}
    for name in sorted(streams):
        column = name.partition("/")[0]
        columns[column] = crc32c(
            name.encode() + struct.pack("<IQ", *streams[name]), columns.get(column, 0)
        )
    return {column: f"{crc:08x}" for column, crc in columns.items()}


def _streams(name: str, column: pa.Array) -> Iterator[tuple[str, pa.Buffer]]:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        yield f"{name}/length", _numbers(_lengths(pc.binary_length(column)))
        yield f"{name}/bytes", _bytes(column)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        yield f"{name}/length", _numbers(_lengths(pc.list_value_length(column)))
        inner = column if pa.types.is_list(kind) else column.cast(_as_list(kind))
        yield from _streams(f"{name}/items", inner.flatten())
    elif pa.types.is_struct(kind):
        yield f"{name}/valid", _numbers(column.is_valid().cast(pa.int8()))
        for field, part in zip(kind, column.flatten(), strict=True):
            yield from _streams(f"{name}/{field.name}", part)
    else:
        yield f"{name}/valid", _numbers(column.is_valid().cast(pa.int8()))
        yield f"{name}/values", _numbers(_plain(column))


def _lengths(lengths: pa.Array) -> pa.Array:
    return pc.fill_null(lengths, -1)


def _as_list(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))


def _plain(column: pa.Array) -> pa.Array:
    """Fixed-width values without nulls. Readers of ORC get nanoseconds, so times are compared in
    milliseconds."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.decimal128(38, kind.scale))
    if not column.null_count:
        return column
    return pc.fill_null(column, pa.scalar(0, pa.int64()).cast(column.type))


def _numbers(column: pa.Array) -> pa.Buffer:
    """The values of a fixed-width array without nulls."""
    width = column.type.bit_width // 8
    return column.buffers()[1].slice(column.offset * width, len(column) * width)


def _bytes(column: pa.Array) -> pa.Buffer:
    """The bytes of all values, in order."""
    if column.null_count:  # a null may have bytes
        column = column.drop_null()
    if not len(column):
        return pa.py_buffer(b"")
    _, offsets, data = column.buffers()
    bounds = memoryview(offsets).cast("i")
    first, end = bounds[column.offset], bounds[column.offset + len(column)]
    return pa.py_buffer(b"") if data is None else data.slice(first, end - first)


# --- combining CRCs ----------------------------------------------------------------------------


def _combine(first: tuple[int, int], then: tuple[int, int]) -> tuple[int, int]:
    """The CRC of two consecutive parts: that of the first, moved over the bytes of the second."""
    crc, size = first[0], then[1]
    bit = 0
    while size and crc:  # 0 stays 0, as that of an empty part
        if size & 1:
            crc = _times(_zeros(bit), crc)
        size >>= 1
        bit += 1
    return crc ^ then[0], first[1] + then[1]


@cache
def _zeros(bit: int) -> tuple[int, ...]:
    """The effect of 2**bit zero bytes on a CRC, as a matrix over GF(2)."""
    if not bit:
        return _one_byte()
    half = _zeros(bit - 1)
    return tuple(_times(half, row) for row in half)


def _times(matrix: tuple[int, ...], vector: int) -> int:
    total = 0
    for row in matrix:
        if vector & 1:
            total ^= row
        vector >>= 1
    return total


def _one_byte() -> tuple[int, ...]:
    """The effect of a zero byte on a CRC, as a matrix over GF(2)."""
    matrix: tuple[int, ...] = (_POLYNOMIAL, *(1 << bit for bit in range(31)))
    for _ in range(3):  # 1, 2, 4, 8 bits
        matrix = tuple(_times(matrix, row) for row in matrix)
    return matrix
