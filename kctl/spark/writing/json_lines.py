"""Rows as JSON lines: bytes in base64, times in ISO 8601, without an object per record.

Columns are rendered by Arrow and then joined row by row: structs from their fields, lists from
their elements. Bytes, text that needs escapes, and other types are rendered value by value.
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
        parts.append(_before(number, name))
        parts.append(_rendered(column.combine_chunks()))
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    return _joined(lines)


def _before(number: int, name: str) -> str:
    """What precedes the value of a field: its name, and what separates it from the one before."""
    return f"{', ' if number else '{'}{json.dumps(name, ensure_ascii=False)}: "


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
    elif pa.types.is_list(kind):
        texts = _lists(column)
    elif pa.types.is_struct(kind) and kind.num_fields:
        texts = _structs(column)
    else:
        texts = _one_by_one(column, _dumped)
    return pc.fill_null(texts, _NULL)


def _structs(column: pa.Array) -> pa.Array:
    parts: list[Any] = []
    # `flatten` makes the fields of a null struct null; `field` would show what lies beneath.
    for number, (field, values) in enumerate(zip(column.type, column.flatten(), strict=True)):
        parts += [_before(number, field.name), _rendered(values)]
    texts = pc.binary_join_element_wise(*parts, "}", "")
    return pc.if_else(column.is_valid(), texts, _NULL) if column.null_count else texts


def _lists(column: pa.Array) -> pa.Array:
    elements = column.flatten()
    if not len(elements):
        return pc.if_else(column.is_valid(), "[]", _NULL)
    # The elements of a null list do not count: its length is null, and no element is taken.
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32())
    ends = pc.cumulative_sum(lengths)
    bounds = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    texts = pc.binary_join(pa.ListArray.from_arrays(bounds, _rendered(elements)), ", ")
    texts = pc.binary_join_element_wise("[", texts, "]", "")
    return pc.if_else(column.is_valid(), texts, _NULL) if column.null_count else texts


def _times(column: pa.Array) -> pa.Array:
    """As `datetime.isoformat`, which leaves out a fraction of zero: 2026-01-31T12:00:00+00:00."""
    whole = pc.strftime(column.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S")
    is_whole = pc.equal(pc.utf8_slice_codeunits(whole, -7), ".000000")
    texts = pc.if_else(is_whole, pc.utf8_slice_codeunits(whole, 0, -7), whole)
    end = '+00:00"' if column.type.tz else '"'
    return pc.binary_join_element_wise('"', texts, end, "")


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
