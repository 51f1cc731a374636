"""Terminals: their width, and text that cannot control them.

Names, values and messages come from clusters and files, and may contain escape sequences that move
the cursor, rename the window or hide text. Everything that kctl writes to a terminal passes through
here; `\\x1b` is then shown as these four characters.
"""

import json
import os
import re
from typing import Final, TextIO

# C0 and C1 controls, DEL; marks that reverse the direction of text; line and paragraph separators;
# surrogates, which stand for bytes that are not UTF-8.
_CONTROLS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BUT_LINES: Final = re.compile(_CONTROLS.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_SHORT: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_IN_JSON: Final = re.compile(_CONTROLS.pattern.replace("\x00-\x1f", ""))


def visible(text: str) -> str:
    """`text` in one line, with control characters as `\\n` and `\\x1b`."""
    return text if text.isprintable() else _CONTROLS.sub(_escape, text)


def visible_lines(text: str) -> str:
    """`text` with control characters escaped, except line feeds and tabs."""
    return text if text.isprintable() else _BUT_LINES.sub(_escape, text)


def visible_bytes(data: bytes) -> bytes:
    """Bytes for a terminal: as `visible_lines`, and bytes that are not UTF-8 as `\\xff`."""
    return visible_lines(data.decode(errors="backslashreplace")).encode(errors="replace")


def visible_json(text: str) -> str:
    """JSON with the control characters escaped that json.dumps leaves as they are."""
    if text.isprintable():
        return text
    return _IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], text)


def terminal_width(stream: TextIO) -> int | None:
    """The number of columns of the terminal behind `stream`; None if it is not a terminal."""
    if not stream.isatty():
        return None
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None  # a stream of a test


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of an argument or file name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
