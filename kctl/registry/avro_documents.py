"""Avro values as JSON documents, and back.

The form is Avro's JSON encoding, made readable where that loses nothing:

- a union of null and one other type is the plain value; a union of several types is tagged with
  the type, as in `{"string": "a"}` (when encoding, untagged values are accepted for both);
- dates, times and timestamps are ISO 8601, decimals and UUIDs are text (when encoding, the
  underlying number is accepted too);
- bytes and fixed are text with one character (U+0000 to U+00FF) per byte, as Avro defines it.
"""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from kctl.registry.schemas import UnencodableValue

Named = Mapping[str, Any]
"""Parsed schemas of records, enums and fixed types by their full names."""

_NULL: Final = "null"
_RANGES: Final = {"int": 1 << 31, "long": 1 << 63}
_NOT_FINITE: Final = {"NaN", "Infinity", "-Infinity"}


def branch_name(schema: Any) -> str:
    """The name of a union's branch: the full name of a named type, else the type."""
    if isinstance(schema, str):
        return schema
    return str(schema.get("name") or schema["type"])


class AvroDocuments:
    """Converts values of schemas whose named types are `named`."""

    def __init__(self, named: Named) -> None:
        self._named = named

    def to_document(self, schema: Any, value: Any) -> Any:
        """A decoded value as JSON can hold it; values of named types in unions are tagged."""
        schema = self._resolved(schema)
        if isinstance(schema, list):
            return self._union_document(schema, value)
        match schema if isinstance(schema, str) else schema["type"]:
            case "record" | "error":
                fields = ((one["name"], one["type"]) for one in schema["fields"])
                return {name: self.to_document(kind, value[name]) for name, kind in fields}
            case "array":
                return [self.to_document(schema["items"], one) for one in value]
            case "map":
                return {key: self.to_document(schema["values"], one) for key, one in value.items()}
        return _plain(value)

    def _union_document(self, branches: list[Any], value: Any) -> Any:
        if value is None:
            return None
        is_tagged = isinstance(value, tuple)  # fastavro names the type of a named branch
        others = [one for one in branches if one != _NULL]
        if is_tagged:
            branch = next(one for one in others if branch_name(one) == value[0])
            value = value[1]
        else:
            branch = next((one for one in others if self._fits(one, value)), others[0])
        document = self.to_document(branch, value)
        return document if len(others) == 1 else {branch_name(branch): document}

    def _fits(self, schema: Any, value: Any) -> bool:
        from fastavro.validation import validate

        if branch_name(schema) in self._named:
            return False  # fastavro names the type of these
        return bool(validate(value, schema, raise_errors=False))

    def from_document(self, schema: Any, document: Any, path: str = "") -> Any:
        """The value to encode; UnencodableValue names the field that does not fit."""
        schema = self._resolved(schema)
        if isinstance(schema, list):
            return self._union_value(schema, document, path)
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = None if isinstance(schema, str) else schema.get("logicalType")
        match kind:
            case "record" | "error":
                return self._record_value(schema, _expect(dict, document, path), path)
            case "array":
                items = enumerate(_expect(list, document, path))
                inner = schema["items"]
                return [self.from_document(inner, one, f"{path}[{at}]") for at, one in items]
            case "map":
                pairs = _expect(dict, document, path).items()
                inner = schema["values"]
                return {key: self.from_document(inner, one, f"{path}.{key}") for key, one in pairs}
            case "enum":
                if document not in schema["symbols"]:
                    known = ", ".join(schema["symbols"])
                    raise _unfit(path, f"{document!r} is not one of {known}")
                return document
        if logical in _LOGICAL and not _is_number(document):
            return _logical(logical, document, path)
        return _PRIMITIVES[kind](schema, document, path)

    def _record_value(self, schema: Any, document: dict[str, Any], path: str) -> dict[str, Any]:
        fields = {field["name"]: field for field in schema["fields"]}
        if unknown := [name for name in document if name not in fields]:
            raise _unfit(f"{path}.{unknown[0]}", f"{schema['name']} has no such field")
        return {
            name: self._field_value(field, document, f"{path}.{name}")
            for name, field in fields.items()
        }

    def _field_value(self, field: Any, document: dict[str, Any], path: str) -> Any:
        if field["name"] in document:
            return self.from_document(field["type"], document[field["name"]], path)
        if "default" not in field:
            raise _unfit(path, "it is missing and has no default")
        return self.from_document(field["type"], field["default"], path)

    def _union_value(self, branches: list[Any], document: Any, path: str) -> Any:
        if document is None and _NULL in branches:
            return None
        others = [one for one in branches if one != _NULL]
        if isinstance(document, dict) and len(document) == 1:
            tag, inner = next(iter(document.items()))
            for branch in others:
                if branch_name(branch) == tag:
                    return tag, self.from_document(branch, inner, f"{path}.{tag}")
        failures = []
        for branch in others:
            try:
                return branch_name(branch), self.from_document(branch, document, path)
            except UnencodableValue as failure:
                failures.append(failure)
        if len(failures) == 1:
            raise failures[0]
        known = ", ".join(map(branch_name, branches))
        raise _unfit(path, f"{_shown(document)} is not one of {known}")

    def _resolved(self, schema: Any) -> Any:
        return self._named.get(schema, schema) if isinstance(schema, str) else schema


def _plain(value: Any) -> Any:
    """A primitive value as JSON can hold it."""
    match value:
        case bytes():
            return value.decode("latin-1")
        case datetime():
            text = value.isoformat()
            return text.replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _is_number(document: Any) -> bool:
    return isinstance(document, int | float) and not isinstance(document, bool)


def _integer(schema: Any, document: Any, path: str) -> int:
    kind = schema if isinstance(schema, str) else schema["type"]
    if not isinstance(document, int) or isinstance(document, bool):
        raise _unfit(path, f"{_shown(document)} is not an integer")
    if not -_RANGES[kind] <= document < _RANGES[kind]:
        raise _unfit(path, f"{document} is out of the range of {kind}")
    return document


def _float(_schema: Any, document: Any, path: str) -> float:
    if document in _NOT_FINITE if isinstance(document, str) else _is_number(document):
        return float(document)
    raise _unfit(path, f"{_shown(document)} is not a number")


def _bytes(schema: Any, document: Any, path: str) -> bytes:
    text = _expect(str, document, path)
    try:
        data = bytes(text.encode("latin-1"))
    except UnicodeEncodeError:
        raise _unfit(path, "bytes are text with characters up to U+00FF") from None
    size = None if isinstance(schema, str) else schema.get("size")
    if size is not None and len(data) != size:
        raise _unfit(path, f"it has {len(data)} bytes; the type has {size}")
    return data


def _number_or_bytes(schema: Any, document: Any, path: str) -> Any:
    """Numbers are given for decimals too."""
    if _is_number(document) and not isinstance(schema, str) and "precision" in schema:
        return Decimal(str(document))
    return _bytes(schema, document, path)


def _null(_schema: Any, document: Any, path: str) -> None:
    if document is not None:
        raise _unfit(path, f"{_shown(document)} is not null")


_PRIMITIVES: Final[dict[str, Callable[[Any, Any, str], Any]]] = {
    "null": _null,
    "boolean": lambda _, document, path: _expect(bool, document, path),
    "int": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "string": lambda _, document, path: _expect(str, document, path),
    "bytes": _number_or_bytes,
    "fixed": _number_or_bytes,
}


def _in_utc(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


_LOGICAL: Final[dict[str, Callable[[str], Any]]] = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
    "timestamp-millis": _in_utc,
    "timestamp-micros": _in_utc,
    "local-timestamp-millis": datetime.fromisoformat,
    "local-timestamp-micros": datetime.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
}


def _logical(name: str, document: Any, path: str) -> Any:
    text = _expect(str, document, path)
    try:
        return _LOGICAL[name](text)
    except (ValueError, InvalidOperation):
        raise _unfit(path, f"{_shown(text)} is not a {name}") from None


def _expect(kind: type, document: Any, path: str) -> Any:
    if isinstance(document, kind):
        return document
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    raise _unfit(path, f"{_shown(document)} is not {names[kind]}")


def _unfit(path: str, reason: str) -> UnencodableValue:
    place = path.lstrip(".")
    return UnencodableValue(f"{place}: {reason}" if place else reason)


def _shown(document: Any) -> str:
    text = repr(document)
    return text if len(text) <= 60 else text[:59] + "…"
