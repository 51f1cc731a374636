"""The schema of JSON values: encoded as text, and inferred from a sample."""

import base64
import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa

from kctl.spark.decoding.json_values import NotDecodable, parse_object


def encode_struct(kind: pa.DataType) -> str:
    """Encode a struct type as text, for plans and manifests."""
    return base64.b64encode(pa.schema(list(kind)).serialize().to_pybytes()).decode()


@cache
def decode_struct(text: str) -> pa.DataType:
    """The inverse of `encode_struct`."""
    return pa.struct(list(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))))


def infer_struct(values: Iterable[bytes | None]) -> pa.DataType | None:
    """The struct type that fits all objects among the values; None if there is no such type.

    Values that are not objects, are nested too deeply or are not Unicode are ignored: they are set
    aside with any schema.
    """
    objects = [found for value in values if (found := _usable_object(value))]
    try:
        kind = pa.infer_type(objects)
        pa.array(objects, kind)  # the inferred type does not always fit
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    return without_nulls(kind) if pa.types.is_struct(kind) else None


def sample_types(values: Iterable[bytes | None]) -> Iterator[pa.DataType]:
    """The type of each object among the values; fields that are null have the null type."""
    for value in values:
        if found := _usable_object(value):
            try:
                yield pa.infer_type([found])
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                continue  # a list of several types: its record is set aside with any schema


def _usable_object(value: bytes | None) -> dict[str, Any] | None:
    try:
        found = parse_object(value or b"")
        json.dumps(found, ensure_ascii=False).encode()
    except (NotDecodable, RecursionError, UnicodeEncodeError):
        return None
    return found


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """Replace null types, of fields that were always null, by string: files have no null type."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(without_nulls(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, without_nulls(field.type)) for field in kind])
    return kind
