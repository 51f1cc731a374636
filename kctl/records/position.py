"""Where in a partition to begin or end, as people write it.

    start | beginning | earliest     end | latest          stored (of the group)
    1234  that offset                +100  100 after the start
    -10   the last ten               -15m  a quarter of an hour ago
    @TIME the first record not older than TIME (ISO 8601, milliseconds or -15m)

Two of them with a colon between are a range, `100:200` or `@-2h:@-1h`; the end is not included.
Either side may be left out.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kctl.records.times import parse_time_ms


class Anchor(Enum):
    """What the number of a position counts from."""

    START = auto()
    """Records after the log start offset."""
    END = auto()
    """Records before the end: 10 is ten before it."""
    OFFSET = auto()
    """The offset itself."""
    TIME = auto()
    """Milliseconds since 1970."""
    STORED = auto()
    """What the group has committed."""


@dataclass(frozen=True)
class Position:
    """A place that each partition has its own offset for."""

    anchor: Anchor
    number: int = 0

    def offset(self, log_start_offset: int, log_end_offset: int) -> int:
        """The offset in a partition of these bounds, never outside of them.

        Not for TIME and STORED, which only the cluster can tell.
        """
        wanted = {
            Anchor.START: log_start_offset + self.number,
            Anchor.END: log_end_offset - self.number,
            Anchor.OFFSET: self.number,
        }[self.anchor]
        return max(log_start_offset, min(wanted, log_end_offset))


START: Final = Position(Anchor.START)
END: Final = Position(Anchor.END)
STORED: Final = Position(Anchor.STORED)

_NAMES: Final = {
    "start": START,
    "beginning": START,
    "earliest": START,
    "end": END,
    "latest": END,
    "stored": STORED,
}


def parse_position(text: str, now_ms: int) -> Position:
    """One position; ValueError if it is none."""
    if text in _NAMES:
        return _NAMES[text]
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
        f"{text!r} is no position; wanted is start, end, an offset, -10 (the last ten), "
        "-15m or @2026-11-01T00:00Z"
    )


def parse_range(text: str, now_ms: int) -> tuple[Position, Position | None]:
    """From where, and up to where if that is said; ValueError if it is neither.

    Times have colons of their own, so every colon is tried until both sides have a meaning.
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
