"""Conversion between the text and the value of a setting, by Kafka's rules, which are Java's.

Kafka compares, stores and prints settings as text, so the syntax of numbers and lists is part of
the protocol. Python accepts more: `1_000` is not a number here, and 1e11 is printed as `1.0E11`.
"""

import re
from enum import IntEnum
from typing import Any, Final

MAX_SHORT: Final = 2**15 - 1
MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1
MAX_DOUBLE: Final = 1.7976931348623157e308


class ConfigError(ValueError):
    """An invalid setting; the text is one line for the operator."""


class ConfigType(IntEnum):
    """Kafka's types of settings, numbered as DescribeConfigs numbers them."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Password(str):
    """A secret; its repr is hidden, so that it does not appear in logs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"


_MAX: Final = {
    ConfigType.SHORT: MAX_SHORT,
    ConfigType.INT: MAX_INT,
    ConfigType.LONG: MAX_LONG,
}
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(
    r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?)"
)


def is_whole_number(text: str) -> bool:
    """Whether the text has Java's syntax of an integer, of any size."""
    return _WHOLE_NUMBER.fullmatch(text) is not None


def invalid_value(key: str, value: object, reason: str) -> ConfigError:
    """The error for an invalid value, with Kafka's message."""
    return ConfigError(f"Invalid value {value} for configuration {key}: {reason}")


def parse_value(key: str, text: str, config_type: ConfigType) -> Any:
    """Parse a text; ConfigError names the key, the text and what is expected."""
    trimmed = text.strip()
    if config_type is ConfigType.BOOLEAN:
        return _parse_boolean(key, text, trimmed)
    if config_type in _MAX:
        return _parse_whole_number(key, text, trimmed, config_type)
    if config_type is ConfigType.DOUBLE:
        return _parse_decimal(key, text, trimmed)
    if config_type is ConfigType.LIST:
        return split_list(trimmed)
    return Password(trimmed) if config_type is ConfigType.PASSWORD else trimmed


def split_list(text: str) -> tuple[str, ...]:
    """`a, b` → (a, b). An empty text has no elements; `a,` has an empty second one, as in Kafka."""
    return tuple(part.strip() for part in text.split(",")) if text else ()


def _parse_boolean(key: str, text: str, trimmed: str) -> bool:
    if (lower := trimmed.lower()) in ("true", "false"):
        return lower == "true"
    raise invalid_value(key, text, "Expected value to be either true or false")


def _parse_whole_number(key: str, text: str, trimmed: str, config_type: ConfigType) -> int:
    highest = _MAX[config_type]
    if is_whole_number(trimmed) and -highest - 1 <= (number := int(trimmed)) <= highest:
        return number
    raise invalid_value(key, text, f"Not a number of type {config_type.name}")


def _parse_decimal(key: str, text: str, trimmed: str) -> float:
    if _DECIMAL.fullmatch(trimmed):
        return float(trimmed.rstrip("dDfF"))
    raise invalid_value(key, text, "Not a number of type DOUBLE")


def value_text(value: Any) -> str | None:
    """The value as Kafka prints it; None for null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _decimal_text(value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _decimal_text(value: float) -> str:
    """Java's form: plain from 1e-3 to 1e7, else d.dddE±n."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits = next(n for n in range(1, 18) if float(f"{value:.{n}e}") == value)
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}E{int(exponent)}"
