"""Colours for JSON on a terminal."""

import json
import re
from typing import Final

from kctl.cli.theme import Style, paint

_TOKEN: Final = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null)"
)
_STYLES: Final = {
    "key": Style.NAME,
    "string": Style.GOOD,
    "number": Style.WARN,
    "word": Style.FAINT,
}


def highlighted(text: str) -> str:
    """JSON text with colours; otherwise unchanged."""
    return _TOKEN.sub(lambda match: paint(match[0], _STYLES[str(match.lastgroup)]), text)


def highlighted_if_json(text: str) -> str:
    """Text with colours if it is a JSON object or list."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        json.loads(text)
    except ValueError:
        return text
    return highlighted(text)
