"""Positions in a partition, as used by `consume --from` and `groups reset-offsets`.

    start | beginning | earliest     end | latest          stored (of the group)
    1234  that offset                +100  100 after the start
    -10   the last ten               -15m  15 minutes ago
    @TIME the first record not older than TIME (ISO 8601, milliseconds or -15m)

Two positions separated by a colon are a range, `100:200` or `@-2h:@-1h`; the end is exclusive, and
either side may be omitted.
"""

from typing import Final

from kctl.cli.arguments.amounts import INT64_MAX
from kctl.cli.times import parse_time_ms
from kctl.model.offsets import END, START, STORED, Anchor, Position

_NAMES: Final = {
    "start": START,
    "beginning": START,
    "earliest": START,
    "end": END,
    "latest": END,
    "stored": STORED,
}


def parse_position(text: str, now_ms: int) -> Position:
    """Parse one position; ValueError if it is malformed."""
    if text in _NAMES:
        return _NAMES[text]
    if text.lstrip("+-").isdecimal() and int(text) > INT64_MAX:
        raise ValueError(f"{text!r} is out of range")
    sign, digits = text[:1], text[1:]
    if text.isdecimal():
        return Position(Anchor.OFFSET, int(text))
    if sign == "+" and digits.isdecimal():
        return Position(Anchor.START, int(digits))
    if sign == "-" and digits.isdecimal():
        return Position(Anchor.END, int(digits))
    if sign == "@" or sign == "-":
        return Position(Anchor.TIME, parse_time_ms(digits if sign == "@" else text, now_ms))
    raise ValueError(
        f"{text!r} is not a position; expected start, end, an offset, -10 (the last ten), -15m "
        "or @2026-11-01T00:00Z"
    )


def parse_range(text: str, now_ms: int) -> tuple[Position, Position | None]:
    """Parse a start and an optional end; ValueError if malformed.

    Times contain colons, so every colon is tried as separator until both sides are positions.
    """
    try:
        return parse_position(text, now_ms), None
    except ValueError:
        for index in (index for index, character in enumerate(text) if character == ":"):
            sides = text[:index] or "start", text[index + 1 :] or "end"
            try:
                return parse_position(sides[0], now_ms), parse_position(sides[1], now_ms)
            except ValueError:
                continue
        raise
