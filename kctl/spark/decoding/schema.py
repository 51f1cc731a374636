"""The schema of JSON values: from Spark's DDL, or inferred from a sample."""

import base64
import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa

from kctl.cli.errors import CliError, ExitStatus
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

    Values that are not objects, are nested too deeply or are not Unicode are ignored: they are kept
    aside with any schema.
    """
    objects = [found for value in values if (found := _usable_object(value))]
    try:
        kind = pa.infer_type(objects)
        pa.array(objects, kind)  # the inferred type does not always fit
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    return _without_nulls(kind) if pa.types.is_struct(kind) else None


def _usable_object(value: bytes | None) -> dict[str, Any] | None:
    try:
        found = parse_object(value or b"")
        json.dumps(found, ensure_ascii=False).encode()
    except (NotDecodable, RecursionError, UnicodeEncodeError):
        return None
    return found


def _without_nulls(kind: pa.DataType) -> pa.DataType:
    """Replace null types, of fields that were always null, by string: files have no null type."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_without_nulls(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _without_nulls(field.type)) for field in kind])
    return kind


def parse_ddl(ddl: str) -> pa.DataType:
    """The struct type of a DDL such as `id INT, tags ARRAY<STRING>`; CliError if invalid."""
    names = {
        "BOOLEAN": pa.bool_(),
        "INT": pa.int32(),
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "LONG": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
    }
    try:
        return pa.struct([_ddl_field(part, names) for part in _split_outside(ddl) if part.strip()])
    except (KeyError, ValueError) as error:
        raise CliError(
            f"--schema: {ddl!r} is not valid: {error}",
            f"NAME TYPE, …; types are {', '.join(names)}, ARRAY<…> and STRUCT<NAME: TYPE, …>",
            ExitStatus.USAGE,
        ) from error


def _ddl_field(text: str, names: dict[str, pa.DataType]) -> tuple[str, pa.DataType]:
    name, _, kind = text.strip().replace(":", " ", 1).partition(" ")
    return name.strip("`"), _ddl_type(kind.strip(), names)


def _ddl_type(text: str, names: dict[str, pa.DataType]) -> pa.DataType:
    outer, bracket, inner = text.partition("<")
    if not bracket:
        return names[text.upper()]
    inner = inner.removesuffix(">")
    if outer.strip().upper() == "ARRAY":
        return pa.list_(_ddl_type(inner.strip(), names))
    if outer.strip().upper() == "STRUCT":
        return pa.struct([_ddl_field(part, names) for part in _split_outside(inner)])
    raise ValueError(f"unknown type {outer}")


def _split_outside(text: str) -> list[str]:
    """Split at commas outside of angle brackets."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
