"""Parsing and formatting of times and durations."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Final

_UNITS_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS: Final = 2**63 - 1
_NO_TIMESTAMP: Final = -1
_SHORT: Final = re.compile(r"(?:\d+(?:ms|[smhdw]))+")
_PIECE: Final = re.compile(r"(\d+)(ms|[smhdw])")
_ISO: Final = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)


def parse_duration_ms(text: str) -> int:
    """Parse `15m`, `1h30m`, `250ms` or ISO 8601's `PT15M`; ValueError if malformed."""
    if _SHORT.fullmatch(text):
        return sum(int(count) * _UNITS_MS[unit] for count, unit in _PIECE.findall(text))
    match = _ISO.fullmatch(text)
    if not match or text in ("P", "PT") or text.endswith("T"):
        raise ValueError(f"{text!r} is not a duration; expected e.g. 15m, 1h30m or PT15M")
    found = {unit: count for unit, count in match.groupdict().items() if count}
    return sum(round(float(count) * _UNITS_MS[unit]) for unit, count in found.items())


def parse_time_ms(text: str, now_ms: int) -> int:
    """Parse a time; milliseconds since 1970. ValueError if it is malformed.

    `-15m` is relative to `now_ms`; digits are milliseconds; `now` is `now_ms`; anything else is ISO
    8601, in UTC unless it has a zone: `2026-11-01`, `2026-11-01T00:00Z`, `2026-11-01T08:00+08:00`.
    """
    moment_ms = _time_ms(text, now_ms)
    if not -_LATEST_MS <= moment_ms <= _LATEST_MS:
        raise ValueError(f"{text!r} is out of range")
    return moment_ms


def _time_ms(text: str, now_ms: int) -> int:
    if text == "now":
        return now_ms
    if text.startswith("-"):
        return now_ms - parse_duration_ms(text[1:])
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{text!r} is not a time; expected e.g. 2026-11-01T00:00Z, -15m or milliseconds"
        ) from error


def format_duration(milliseconds: int) -> str:
    """The two largest units: `2d3h`, `4m10s`, `350ms`."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    pieces: list[str] = []
    rest = milliseconds
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, _UNITS_MS[unit])
        if count or pieces:
            pieces.append(f"{count}{unit}" if count else "")
    return "".join(pieces[:2])


def iso_time(timestamp_ms: int | None) -> str | None:
    """`2026-11-01T00:00:00.000Z`; None for no timestamp and for values outside the calendar."""
    if timestamp_ms is None or timestamp_ms == _NO_TIMESTAMP:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now_ms() -> int:
    """The current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
