"""Keys and values as text or JSON; what cannot be read as such is set aside, not lost."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kctl.spark.schema import decode_struct, json_object
from kctl.spark.settings import ContentType, TaskSettings

UNDECODABLE = "_undecodable/"
"""The directory, hidden from readers, of records that were set aside."""


def decode_content(table: pa.Table, settings: TaskSettings) -> tuple[pa.Table, pa.Table]:
    """(rows with key and value decoded, rows where that is not possible, as they were)."""
    decoders = {
        name: decoder
        for name, decoder in (
            ("key", _decoder(settings.key_type, "")),
            ("value", _decoder(settings.value_type, settings.value_schema)),
        )
        if decoder is not None and name in table.column_names
    }
    decoded = table
    is_good = None
    for name, decode in decoders.items():
        raw = table.column(name).combine_chunks()
        column = decode(raw)
        decoded = decoded.set_column(table.column_names.index(name), name, column)
        # Null was null before, or it could not be read.
        good = pc.or_(pc.is_valid(column), pc.is_null(raw))
        is_good = good if is_good is None else pc.and_(is_good, good)
    if is_good is None or pc.all(is_good).as_py():
        return decoded, table.slice(0, 0)
    return decoded.filter(is_good), table.filter(pc.invert(is_good))


Decoder = Callable[[Any], Any]


def _decoder(kind: ContentType, schema: str) -> Decoder | None:
    if kind is ContentType.BINARY:
        return None
    if kind is ContentType.STRING:
        return _to_text
    if not schema:
        return _to_json_text
    arrow_type = decode_struct(schema)
    return lambda raw: _to_struct(raw, arrow_type)


def _to_text(raw: pa.Array) -> pa.Array:
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:  # somewhere in here: look at each
        return pa.array([_text(each) for each in raw.to_pylist()], pa.string())


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _to_json_text(raw: pa.Array) -> pa.Array:
    """The text of JSON, unchanged, where it is JSON."""
    texts = [_text(each) for each in raw.to_pylist()]
    return pa.array([text if _is_json(text) else None for text in texts], pa.string())


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True


def _to_struct(raw: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """JSON objects by the fields of the schema; others in the object are left out."""
    values = [json_object(each) for each in raw.to_pylist()]
    try:
        return pa.array(values, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # one that does not fit: each alone
        return pa.array([_fitting(each, arrow_type) for each in values], arrow_type)


def _fitting(value: dict[str, Any] | None, arrow_type: pa.DataType) -> dict[str, Any] | None:
    try:
        pa.array([value], arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    return value
