"""JSON values in the types that JSON does not have: DATE, TIMESTAMP, DECIMAL, BINARY.

Dates and times are texts in ISO 8601 (without a zone: UTC), decimals are numbers or texts, bytes
are texts in base64. A value is either held exactly or does not fit.
"""

import base64
import binascii
import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?"
)


class NotHeld(Exception):
    """The value does not fit its type."""


def is_typed(kind: pa.DataType) -> bool:
    """Whether a type, or a part of it, is one of those that JSON does not have."""
    if pa.types.is_struct(kind):
        return any(is_typed(field.type) for field in kind)
    if pa.types.is_list(kind):
        return is_typed(kind.value_type)
    return any(check(kind) for check in _CONVERSIONS)


def converted(value: Any, kind: pa.DataType) -> Any:
    """A parsed JSON value as Arrow takes it; NotHeld if a part does not fit."""
    if value is None:
        return None
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {field.name: converted(value.get(field.name), field.type) for field in kind}
    if pa.types.is_list(kind) and isinstance(value, list):
        return [converted(each, kind.value_type) for each in value]
    for check, convert in _CONVERSIONS.items():
        if check(kind):
            try:
                return convert(value, kind)
            except (ValueError, TypeError, InvalidOperation, OverflowError):
                raise NotHeld from None
    return value


def holds(value: Any, kind: pa.DataType) -> bool | None:
    """Whether a type that JSON does not have holds a value; None for other types."""
    if pa.types.is_nested(kind) or not is_typed(kind):
        return None
    try:
        converted(value, kind)
    except NotHeld:
        return False
    return True


def _to_date(value: Any, kind: pa.DataType) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):  # decoded from Avro
        return value
    if not _DATE.fullmatch(value):
        raise ValueError(value)
    return date.fromisoformat(value)


def _to_time(value: Any, kind: pa.DataType) -> datetime:
    if not isinstance(value, datetime) and not _TIME.fullmatch(value):
        raise ValueError(value)
    found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _to_decimal(value: Any, kind: pa.DataType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise TypeError(value)
    number = Decimal(repr(value) if isinstance(value, float) else value)
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):  # infinite
        raise TypeError(value)
    fraction = max(0, -exponent)
    whole = len(digits) + exponent
    is_zero = not any(digits)
    if not is_zero and (fraction > kind.scale or whole > kind.precision - kind.scale):
        raise ValueError(value)
    return number


def _to_bytes(value: Any, kind: pa.DataType) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(value)
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(value) from error


_CONVERSIONS: Final = {
    pa.types.is_date: _to_date,
    pa.types.is_timestamp: _to_time,
    pa.types.is_decimal: _to_decimal,
    pa.types.is_binary: _to_bytes,
}
