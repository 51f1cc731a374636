"""Java properties files, as Kafka's tools read them with `--command-config`."""

import re
from collections.abc import Iterator
from pathlib import Path

from kctl.cli.errors import CliError
from kctl.cli.text_files import read_small_text

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY = re.compile(r"(?P<key>(?:[^\s=:\\]|\\.)+)\s*[=:]?\s*(?P<value>.*)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_client_properties(path: Path, option: str = "--command-config") -> dict[str, str]:
    """The properties in a file; CliError, which names the option, if it cannot be read."""
    try:
        text = read_small_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CliError(
            f"cannot read {path}: {reason}", f"{option} expects a file of Java properties"
        ) from error
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    """Parse properties like java.util.Properties: comments, continuation lines, escapes."""
    pairs = (_KEY.fullmatch(line) for line in _logical_lines(text))
    return {_unescape(pair["key"]): _unescape(pair["value"]) for pair in pairs if pair}


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments; a line that ends with a backslash is joined with the next."""
    pending = ""
    for line in text.splitlines():
        stripped = line.lstrip()
        if not pending and (not stripped or stripped[0] in "#!"):
            continue
        pending += stripped
        if _is_continued(pending):
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def _is_continued(line: str) -> bool:
    """Whether the line ends with an odd number of backslashes; pairs are escaped backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROL.get(code, code)
