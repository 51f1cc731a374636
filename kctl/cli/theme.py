"""The colours of kctl, all in one place, and the decision whether to use them.

Only the 16 colours of the terminal's own palette are used, never as a background, and yellow never
in bold: so the terminal's theme keeps them readable on dark and on light backgrounds. Colour
repeats what the text says and never replaces it.

`--color always` and `never` decide; otherwise streams that are terminals get colour, unless
NO_COLOR is set (no-color.org) or TERM is dumb.
"""

import os
from collections.abc import Callable
from enum import StrEnum
from typing import Final, TextIO


class Style(StrEnum):
    """What a colour means; the value is its SGR parameter (ECMA-48)."""

    HEADING = "1"
    GOOD = "32"
    """Healthy, complete, added."""
    WARN = "33"
    """Degraded: works, but needs attention."""
    BAD = "31"
    """Broken, lost, removed."""
    ALARM = "1;31"
    """The word `error`."""
    NAME = "36"
    """Names in trees, keys in JSON."""
    FAINT = "2"
    """Less important: defaults, connecting lines, unused values."""


class ColorMode(StrEnum):
    """Values of `--color`."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


Paint = Callable[[str, Style | None], str]
"""Adds a style to text."""

Spans = tuple[tuple[str, Style | None], ...]
"""A text in pieces, each with its style."""

_RESET: Final = "\x1b[0m"
_mode = ColorMode.AUTO

RICH_STYLES: Final = {
    "bar.complete": "cyan",
    "bar.finished": "green",
    "bar.pulse": "cyan",
    "bar.back": "bright_black",
    "progress.percentage": "none",
    "progress.download": "none",
    "progress.data.speed": "none",
    "progress.remaining": "bright_black",
}
"""The same theme for rich's progress bars."""

_MEANINGS: Final = {
    Style.GOOD: "ok completed moved running Stable caught-up falling altered created deleted "
    "changed elected started removed add added ALLOW aborted cancelled same CompleteCommit "
    "CompleteAbort",
    Style.WARN: "lagging unread growing rewound reassigning under-replicated at-min-isr "
    "PreparingRebalance CompletingRebalance Assigning Reconciling Ongoing PrepareCommit "
    "PrepareAbort PrepareEpochFence",
    Style.BAD: "failed remove DENY stalled lost beyond-end unavailable under-min-isr refused "
    "stopped Dead differs corrupt missing",
    Style.FAINT: "- unknown no-offset Empty steady",
}
_STYLE_OF: Final = {word: style for style, words in _MEANINGS.items() for word in words.split()}
_SEVERITY: Final = (Style.BAD, Style.WARN, Style.GOOD, Style.FAINT)


def set_color_mode(mode: ColorMode) -> None:
    """Apply `--color` to this process."""
    global _mode
    _mode = mode


def has_color(stream: TextIO) -> bool:
    """Whether to write colours to `stream`."""
    if _mode is not ColorMode.AUTO:
        return _mode is ColorMode.ALWAYS
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def painter(stream: TextIO) -> Paint:
    """How to style text for `stream`: not at all if it gets no colour."""
    return paint if has_color(stream) else plain


def paint(text: str, style: Style | None) -> str:
    """`text` in `style`."""
    return f"\x1b[{style}m{text}{_RESET}" if style and text else text


def plain(text: str, style: Style | None) -> str:
    """`text` without a style."""
    del style
    return text


def styled(text: str, style: Style, stream: TextIO) -> str:
    """`text` in `style` if `stream` gets colour."""
    return painter(stream)(text, style)


def word_style(text: str) -> Style | None:
    """The style of a status such as `ok`, or of the worst of several joined by commas."""
    found = {_STYLE_OF.get(word.strip()) for word in text.split(",")}
    return next((style for style in _SEVERITY if style in found), None)
