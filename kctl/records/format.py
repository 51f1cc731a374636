r"""kcat's format letters: `%t/%p@%o %k=%s\n`.

    %s value    %S its size    %R its size as 4 bytes, big-endian    %v same as %s
    %k key      %K its size    %h headers, name=value,…              %T timestamp in ms
    %t topic    %p partition   %o offset                             %% a percent sign

The size of null is -1; null itself is shown as empty, or as the text given by `null`.
Keys and values take a form in braces: `%k{hex}`, `%s{base64}`, `%s{json}`; the timestamp `%T{iso}`.
Escapes are \n, \r, \t, \\ and \xNN.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Final

from kctl.cli.times import iso_time
from kctl.model.records import TopicRecord

Formatter = Callable[[TopicRecord], bytes]
Coding = Callable[[bytes], bytes]

_TOKEN: Final = re.compile(
    r"%(?P<letter>.)(?:\{(?P<form>\w*)\})?"
    r"|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.)"
    r"|(?P<text>[^%\\]+)|(?P<stray>[%\\])",
    re.DOTALL,
)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}
_CODINGS: Final[dict[str, Coding]] = {
    "": bytes,
    "hex": lambda data: data.hex().encode(),
    "base64": base64.b64encode,
    "json": lambda data: json.dumps(data.decode(errors="replace"), ensure_ascii=False).encode(),
}


def compile_format(text: str, null: bytes = b"", shown: Coding = bytes) -> Formatter:
    """A function that formats records; ValueError names the invalid part of the format.

    `shown` is applied to keys, values and headers, not to the rest of the format.
    """
    parts = [_part(match, null, shown) for match in _TOKEN.finditer(text)]
    return lambda record: b"".join(part(record) for part in parts)


def _part(match: re.Match[str], null: bytes, shown: Coding) -> Formatter:
    if match["stray"]:
        raise ValueError(f"{match['stray']!r} at the end of the format is incomplete")
    if match["letter"]:
        return _letter(match["letter"], match["form"], null, shown)
    if match["hex"]:
        return _constant(bytes.fromhex(match["hex"]))
    if match["escape"]:
        if match["escape"] not in _ESCAPES:
            raise ValueError(
                f"\\{match['escape']} is not an escape; use \\n, \\r, \\t, \\\\ or \\xNN"
            )
        return _constant(_ESCAPES[match["escape"]])
    return _constant(match["text"].encode())


def _constant(data: bytes) -> Formatter:
    return lambda _: data


def _letter(letter: str, form: str | None, null: bytes, shown: Coding) -> Formatter:
    if letter == "%":
        return _constant(b"%" + (b"" if form is None else b"{%s}" % form.encode()))
    if letter in "ksv":
        return _contents(letter, form or "", null, shown)
    if letter == "h" and not form:
        return lambda record: shown(format_headers(record))
    if letter == "T" and form == "iso":
        return lambda record: (iso_time(record.timestamp_ms) or "").encode()
    if form:
        raise ValueError(f"%{letter} takes no {{{form}}}")
    if letter not in _LETTERS:
        raise ValueError(f"%{letter} is not a format letter; use {' '.join(_NAMES)}")
    return _LETTERS[letter]


def _contents(letter: str, form: str, null: bytes, shown: Coding) -> Formatter:
    if form not in _CODINGS:
        known = ", ".join(filter(None, _CODINGS))
        raise ValueError(f"%{letter}{{{form}}} is unknown; the forms are {known}")
    coding = _CODINGS[form]

    def write(record: TopicRecord) -> bytes:
        data = record.key if letter == "k" else record.value
        return null if data is None else shown(coding(data))

    return write


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _number(value: int | None) -> bytes:
    return str(-1 if value is None else value).encode()


def format_headers(record: TopicRecord) -> bytes:
    """Headers as kcat prints them: `name=value,name=NULL`."""
    pairs = (
        name.encode() + b"=" + (b"NULL" if data is None else data) for name, data in record.headers
    )
    return b",".join(pairs)


_LETTERS: Final[dict[str, Formatter]] = {
    "S": lambda record: _number(_size(record.value)),
    "R": lambda record: _size(record.value).to_bytes(4, "big", signed=True),
    "K": lambda record: _number(_size(record.key)),
    "T": lambda record: _number(record.timestamp_ms),
    "h": format_headers,
    "t": lambda record: (record.topic or "").encode(),
    "p": lambda record: _number(record.partition),
    "o": lambda record: _number(record.offset),
}
_NAMES: Final = [f"%{letter}" for letter in "svSRkKhTtpo"]
