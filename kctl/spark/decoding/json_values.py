"""JSON values → Arrow structs, without changing a value.

A value either becomes exactly the struct of its fields or is rejected with a reason. Arrow's own
conversion is not strict enough for that: `pa.array([{"price": 10.5}], struct<price: int64>)` gives
10, unknown fields disappear, and integers above 2**53 are rounded in a column of doubles.

Fast path: Arrow's JSON reader parses a whole chunk at once (2.7 times as fast as Python's json).
It is used only where its result is known to be exact; otherwise every value is parsed and checked
by itself (`misfit`), which also gives the reasons. A property test ties the two together.
"""

import json
import math
from collections.abc import Callable
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from kctl.spark.decoding.typed_values import converted, holds, is_typed

_ONE_OBJECT: Final = r"(?s)^\s*\{.*\}\s*$"
_EXACT_DOUBLES: Final = 2.0**53
"""From here on doubles cannot hold every integer."""
_MAX_FLOAT32: Final = (2 - 2**-23) * 2.0**127
_SHOWN_LENGTH: Final = 40


class NotDecodable(Exception):
    """Why a value cannot be decoded."""


def parse_json(value: bytes, parse_float: Callable[[str], Any] = float) -> Any:
    """The JSON document in a value; NotDecodable if it is not one, or nested too deeply."""
    try:
        return json.loads(value, parse_constant=_not_json, parse_float=parse_float)
    except RecursionError:
        raise NotDecodable("nested too deeply") from None
    except ValueError as error:
        raise NotDecodable(f"not JSON: {error}") from None


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def parse_object(value: bytes, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The JSON object in a value; NotDecodable if it is not an object."""
    found = parse_json(value, parse_float)
    if not isinstance(found, dict):
        raise NotDecodable("not a JSON object")
    return found


def to_structs(
    raw: pa.Array, kind: pa.DataType, *, keep_unknown: bool
) -> tuple[pa.Array, pa.Array | None]:
    """(structs, reasons): a reason for every value that is not null and could not be decoded.

    `keep_unknown`: an object with a field that `kind` lacks is rejected, so that the field is kept
    in the rejected record; otherwise such fields are left out, as Spark does with a given schema.
    """
    fast = _parse_chunk(raw, kind, keep_unknown)
    if fast is not None:
        return fast, None
    structs: list[dict[str, Any] | None] = []
    reasons: list[str | None] = []
    for value in raw.to_pylist():
        found, reason = _decode(value, kind, keep_unknown)
        structs.append(found)
        reasons.append(reason)
    return pa.array(structs, kind), pa.array(reasons, pa.string())


def _decode(
    value: bytes | None, kind: pa.DataType, keep_unknown: bool
) -> tuple[dict[str, Any] | None, str | None]:
    if value is None:
        return None, None
    try:
        if is_typed(kind):
            return _decode_typed(value, kind, keep_unknown)
        found = parse_object(value)
        reason = misfit(found, kind, keep_unknown)
    except NotDecodable as error:
        return None, str(error)
    except RecursionError:
        return None, "nested too deeply"
    return (None, reason) if reason else (found, None)


def _decode_typed(
    value: bytes, kind: pa.DataType, keep_unknown: bool
) -> tuple[dict[str, Any] | None, str | None]:
    """With types that JSON does not have; fractions are parsed as decimals, which are exact."""
    found = parse_object(value, _Fraction)
    reason = misfit(found, kind, keep_unknown)
    return (None, reason) if reason else (converted(found, kind), None)


class _Fraction(float):
    """A number with a fraction, or an exponent, that remembers its digits."""

    def __new__(cls, text: str) -> "_Fraction":
        found = super().__new__(cls, text)
        found.text = text
        return found

    text: str

    def __repr__(self) -> str:
        return self.text


# --- the fast path -----------------------------------------------------------------------------


def _parse_chunk(raw: pa.Array, kind: pa.DataType, keep_unknown: bool) -> pa.Array | None:
    """All values parsed at once; None where that is not possible or might not be exact."""
    from pyarrow import json as arrow_json

    present = raw.drop_null()
    if not len(present) or not kind.num_fields or is_typed(kind):
        return None
    try:
        texts = present.cast(pa.string())  # the reader does not validate UTF-8
        # Each value is one object or more, never a part of one: an object cannot go on in the next
        # value, because a line feed is not allowed in a string and `}` is not followed by `{`.
        # With as many rows as values, row and value correspond.
        if not pc.all(pc.match_substring_regex(texts, _ONE_OBJECT)).as_py():
            return None
        lines = b"\n".join(present.to_pylist())
        table = arrow_json.read_json(
            pa.BufferReader(lines),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema(list(kind)),
                unexpected_field_behavior="error" if keep_unknown else "ignore",
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError):
        return None
    if len(table) != len(present):
        return None
    structs = table.select([field.name for field in kind]).to_struct_array().combine_chunks()
    if structs.type != kind or not _is_exact(structs):
        return None
    return _with_nulls(structs, raw)


def _is_exact(column: pa.Array) -> bool:
    """Whether no number was rounded beyond what a decimal fraction is: no large or infinite one."""
    kind = column.type
    if pa.types.is_struct(kind):
        return all(_is_exact(each) for each in column.flatten())
    if pa.types.is_list(kind):
        return _is_exact(column.flatten())
    if not pa.types.is_floating(kind):
        return True
    limit = _EXACT_DOUBLES if pa.types.is_float64(kind) else 2.0**24
    return bool(pc.all(pc.less(pc.abs(column.drop_null()), limit)).as_py())


def _with_nulls(structs: pa.Array, raw: pa.Array) -> pa.Array:
    """Put the nulls of `raw` back between the structs of its other values."""
    if not raw.null_count:
        return structs
    is_present = raw.is_valid()
    positions = pc.subtract(pc.cumulative_sum(is_present.cast(pa.int64())), 1)
    return structs.take(pc.if_else(is_present, positions, pa.scalar(None, pa.int64())))


# --- one value ---------------------------------------------------------------------------------


def misfit(value: Any, kind: pa.DataType, keep_unknown: bool, path: str = "") -> str:
    """Why a JSON value cannot be held exactly by a type; empty if it can."""
    if value is None:
        return ""
    if pa.types.is_struct(kind):
        return _struct_misfit(value, kind, keep_unknown, path)
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            return _refused(value, kind, path)
        reasons = (misfit(each, kind.value_type, keep_unknown, f"{path}[]") for each in value)
        return next(filter(None, reasons), "")
    return "" if _is_held(value, kind) else _refused(value, kind, path)


def _struct_misfit(value: Any, kind: pa.DataType, keep_unknown: bool, path: str) -> str:
    if not isinstance(value, dict):
        return _refused(value, kind, path)
    known = {field.name: field.type for field in kind}
    for name, each in value.items():
        inner = f"{path}.{name}" if path else name
        if name not in known:
            if keep_unknown:
                return f"field {_shown(inner)} is not in the schema"
        elif reason := misfit(each, known[name], keep_unknown, inner):
            return reason
    return ""


def _is_held(value: Any, kind: pa.DataType) -> bool:
    if (is_held := holds(value, kind)) is not None:
        return is_held
    if pa.types.is_boolean(kind):
        return isinstance(value, bool)
    if pa.types.is_string(kind):
        return isinstance(value, str) and _is_unicode(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float) and not math.isfinite(value):  # as Python reads 1e999
        return False
    if pa.types.is_integer(kind):
        limit = 2 ** (kind.bit_width - 1)
        return value == math.floor(value) and -limit <= value < limit
    if pa.types.is_float32(kind):
        return abs(value) < 2**24 if isinstance(value, int) else abs(value) <= _MAX_FLOAT32
    return isinstance(value, float) or abs(value) <= _EXACT_DOUBLES


def _is_unicode(text: str) -> bool:
    """Whether the text can be written as UTF-8; an escaped lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refused(value: Any, kind: pa.DataType, path: str) -> str:
    return f"field {_shown(path)}: {_shown(json.dumps(value))} does not fit {kind}"


def _shown(text: str) -> str:
    """A short form that every file can hold."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return plain if len(plain) <= _SHOWN_LENGTH else f"{plain[:_SHOWN_LENGTH]}…"
