"""Bars and sparklines out of block characters."""

from collections.abc import Sequence
from typing import Final

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_HEIGHTS: Final = "▁▂▃▄▅▆▇█"


def bar(share: float, width: int) -> str:
    """A bar of `share` (0 to 1) of `width` characters, in steps of an eighth of a character."""
    whole, part = divmod(round(min(max(share, 0.0), 1.0) * width * 8), 8)
    return "█" * whole + _EIGHTHS[part].strip()


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The last `width` values as a line of blocks, scaled from 0 to the largest; gaps for None."""
    shown = values[-width:]
    largest = max((value for value in shown if value is not None), default=0)
    return "".join(" " if value is None else _block(value, largest) for value in shown)


def _block(value: float, largest: float) -> str:
    if largest <= 0:
        return _HEIGHTS[0]
    return _HEIGHTS[min(len(_HEIGHTS) - 1, int(max(value, 0) / largest * len(_HEIGHTS)))]
