"""Parser for Java's .properties files, the format of server.properties and client.properties."""

import re
from collections.abc import Iterator
from typing import Final

# Compiled when a file is read, not on import: most importers read no file.
_ESCAPE: Final = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_MEANING: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK: Final = " \t\f"
_LINE_END: Final = r"\r\n|\r|\n"


def parse_properties(text: str) -> dict[str, str]:
    r"""Keys and values by Java's rules; the last value of a repeated key wins.

    A key ends at the first `=`, `:` or blank that is not escaped. Blanks around the separator are
    dropped, blanks at the end of the value are kept. `#` and `!` start a comment. A backslash at
    the end of a line continues it with the next one, without its leading blanks. Elsewhere it
    escapes: `\t \n \r \f \uXXXX`; a backslash before any other character is dropped.
    ValueError, which does not quote the text, for a malformed `\uXXXX`: values may be secrets.
    """
    return dict(_split(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    lines = iter(re.split(_LINE_END, text))
    for line in lines:
        logical = line.lstrip(_BLANK)
        if (
            not logical or logical[0] in "#!" or logical == "\\"
        ):  # a lone backslash continues nothing
            continue
        while _continues(logical):
            logical = logical[:-1] + next(lines, "").lstrip(_BLANK)
        yield logical


def _continues(line: str) -> bool:
    """Whether the line ends in a backslash that is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


_KEY: Final = r"(?s)((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)"


def _split(line: str) -> tuple[str, str]:
    match = re.fullmatch(_KEY, line)
    key, value = match.groups() if match else (line, "")
    return _unescape(key), _unescape(value)


def _unescape(text: str) -> str:
    return re.sub(_ESCAPE, _meaning, text)


def _meaning(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) > 1:
        return chr(int(escaped[1:], 16))
    if escaped == "u":
        raise ValueError("Malformed \\uxxxx encoding")
    return _MEANING.get(escaped, escaped)
