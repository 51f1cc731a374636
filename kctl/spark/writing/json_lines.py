"""Rows as JSON lines: bytes in base64, times in ISO 8601, without an object per record.

Numbers, times, text and base64 are rendered by Arrow column by column and then joined row by row.
Columns of other types (structs, headers of records that have any) are rendered value by value.
"""

import base64
import json
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_ESCAPED: Final = r'["\\\x00-\x1f\x7f]'
_NULL: Final = pa.scalar("null")


def json_lines(table: pa.Table) -> bytes:
    """One line per row, in UTF-8."""
    if not len(table):
        return b""
    parts: list[Any] = []
    for number, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        parts.append(f"{'{' if not number else ', '}{json.dumps(name, ensure_ascii=False)}: ")
        parts.append(_rendered(column.combine_chunks()))
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    return _joined(lines)


def _joined(lines: pa.StringArray) -> bytes:
    """The text of all lines: the buffer of an array without nulls is already that."""
    _, offsets, data = lines.buffers()
    bounds = memoryview(offsets).cast("i")
    first, end = bounds[lines.offset], bounds[lines.offset + len(lines)]
    return bytes(memoryview(data)[first:end])


def _rendered(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_integer(kind):
        texts = column.cast(pa.string())
    elif pa.types.is_boolean(kind):
        texts = pc.if_else(column, "true", "false")
    elif pa.types.is_timestamp(kind):
        texts = _times(column)
    elif pa.types.is_string(kind):
        texts = _texts(column)
    elif pa.types.is_binary(kind):
        texts = _one_by_one(column, lambda value: f'"{base64.b64encode(value).decode()}"')
    elif pa.types.is_list(kind) and not len(column.flatten()):
        texts = pc.if_else(column.is_valid(), "[]", _NULL)
    else:
        texts = _one_by_one(column, _dumped)
    return pc.fill_null(texts, _NULL)


def _times(column: pa.Array) -> pa.Array:
    """As `datetime.isoformat`, which leaves out a fraction of zero: 2026-01-31T12:00:00+00:00."""
    milliseconds = column.cast(pa.timestamp("ms"))
    whole = pc.strftime(milliseconds, format="%Y-%m-%dT%H:%M:%S")  # with three decimals
    short = pc.utf8_slice_codeunits(whole, 0, -4)
    is_whole = pc.equal(pc.utf8_slice_codeunits(whole, -4), ".000")
    fraction = pc.binary_join_element_wise(whole, "000", "")
    texts = pc.if_else(is_whole, short, fraction)
    return pc.binary_join_element_wise('"', texts, '+00:00"', "")


def _texts(column: pa.Array) -> pa.Array:
    """Text in quotes; most of it needs no escapes."""
    plain = pc.binary_join_element_wise('"', column, '"', "")
    is_special = pc.match_substring_regex(column, _ESCAPED)
    if not pc.any(is_special).as_py():
        return plain
    special = column.filter(pc.fill_null(is_special, False))
    return pc.replace_with_mask(
        plain, pc.fill_null(is_special, False), _one_by_one(special, _dumped)
    )


def _one_by_one(column: pa.Array, show: Callable[[Any], str]) -> pa.Array:
    texts = [None if value is None else show(value) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
