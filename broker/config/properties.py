"""Parser for Java's .properties files, the format of Kafka's server.properties."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.config.values import ConfigError

# Compiled when a file is read, not on import: most importers read no file.
_ESCAPE: Final = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_MEANING: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK: Final = " \t\f"
_LINE_END: Final = r"\r\n|\r|\n"


def read_properties(path: Path) -> dict[str, str]:
    """The keys and values of a file; ConfigError if it cannot be read or parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text") from error
    try:
        return parse_properties(text)
    except ValueError as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def parse_properties(text: str) -> dict[str, str]:
    r"""Keys and values by Java's rules; the last value of a repeated key wins.

    A key ends at the first `=`, `:` or blank that is not escaped. Blanks around the separator are
    dropped, blanks at the end of the value are kept. `#` and `!` start a comment. A backslash at
    the end of a line continues it with the next one, without its leading blanks. Elsewhere it
    escapes: `\t \n \r \f \uXXXX`; a backslash before any other character is dropped.
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
        raise ValueError(f"Malformed \\uxxxx encoding in {match.string!r}")
    return _MEANING.get(escaped, escaped)
