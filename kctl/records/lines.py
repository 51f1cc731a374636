"""Input of `produce`: bytes from a file or pipe → pieces → records."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from kctl.model.records import Headers, TopicRecord
from kctl.records.json_lines import parse_json_line

READ_BYTES = 1 << 16


@dataclass(frozen=True)
class HeaderForm:
    """Headers in front of a line, as kafka-console-producer reads them with parse.headers=true."""

    delimiter: bytes = b"\t"
    """Between the headers and the rest of the line."""
    separator: bytes = b","
    """Between two headers."""
    key_separator: bytes = b":"
    """Between the name and the value of a header."""

    def split(self, piece: bytes, null_marker: bytes | None) -> tuple[Headers, bytes]:
        """The headers and the rest of a line; ValueError if it has none."""
        text, delimiter, rest = piece.partition(self.delimiter)
        if not delimiter:
            raise ValueError(f"no headers: the delimiter {_shown(self.delimiter)} is missing")
        if not text or text == null_marker:
            return (), rest
        return tuple(self._header(one, null_marker) for one in text.split(self.separator)), rest

    def _header(self, text: bytes, null_marker: bytes | None) -> tuple[str, bytes | None]:
        name, separator, value = text.partition(self.key_separator)
        if not separator:
            raise ValueError(f"{_shown(text)} is not a header: no {_shown(self.key_separator)}")
        return name.decode(errors="replace"), None if value == null_marker else value


def _shown(data: bytes) -> str:
    return repr(data.decode("utf-8", "backslashreplace"))


@dataclass(frozen=True)
class LineForm:
    """How a piece of input becomes a record."""

    key_separator: bytes | None = None
    """Separator of key and value; a line without it is refused, unless there is a `key`."""
    key: bytes | None = None
    """Key of lines without a key."""
    headers: Headers = ()
    header_form: HeaderForm | None = None
    """Where the headers of a line are; None if it has none."""
    null_marker: bytes | None = None
    """Text that stands for a null key or value."""
    json: bool = False
    timestamp_ms: int | None = None
    partition: int | None = None
    keep_partitions: bool = False
    """Whether the partition of a JSON object is used; else the key decides."""
    encode: Callable[[TopicRecord], TopicRecord] | None = None
    """Encodes key and value; ValueError if one of them is not valid."""

    def record(self, piece: bytes) -> TopicRecord:
        """The record of one piece; headers of the form follow those of the piece."""
        found = parse_json_line(piece) if self.json else self._plain(piece)
        record = replace(
            found,
            key=self.key if found.key is None else found.key,
            headers=found.headers + self.headers,
            timestamp_ms=self._or(found.timestamp_ms, self.timestamp_ms),
            partition=self._or(self.partition, found.partition if self.keep_partitions else None),
        )
        return self.encode(record) if self.encode else record

    def _plain(self, piece: bytes) -> TopicRecord:
        headers: Headers = ()
        if self.header_form:
            headers, piece = self.header_form.split(piece, self.null_marker)
        key: bytes | None = None
        if self.key_separator and self.key_separator in piece:
            key, piece = piece.split(self.key_separator, 1)
        elif self.key_separator and self.key is None:
            shown = _shown(self.key_separator)
            raise ValueError(f"no key separator {shown}; -k KEY is for lines without one")
        return TopicRecord(key=self._null(key), value=self._null(piece), headers=headers)

    def _null(self, data: bytes | None) -> bytes | None:
        return None if data == self.null_marker else data

    @staticmethod
    def _or(first: int | None, second: int | None) -> int | None:
        return second if first is None else first


def split_pieces(stream: BinaryIO, delimiter: bytes) -> Iterator[bytes]:
    """The pieces between delimiters, each as soon as it is complete."""
    if delimiter == b"\n":
        yield from (line.removesuffix(b"\n") for line in stream)
        return
    rest = b""
    while data := _read_some(stream):
        *whole, rest = (rest + data).split(delimiter)
        yield from whole
    if rest:
        yield rest


def _read_some(stream: BinaryIO) -> bytes:
    """The bytes available now; does not wait for more from a pipe."""
    read = getattr(stream, "read1", stream.read)
    data: bytes = read(READ_BYTES)
    return data


def numbered_records(
    pieces: Iterable[bytes], form: LineForm, name: str
) -> Iterator[tuple[str, TopicRecord]]:
    """Records with their place in the input; ValueError names the place of invalid input."""
    for number, piece in enumerate(pieces, 1):
        place = f"{name}:{number}"
        try:
            yield place, form.record(piece)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error


def parse_header(text: str) -> tuple[str, bytes | None]:
    """`name=value`; a name alone has the value null."""
    name, equals, value = text.partition("=")
    if not name:
        raise ValueError(f"{text!r} is not a header; expected NAME=VALUE")
    return name, value.encode() if equals else None


def parse_separator(text: str) -> bytes:
    r"""A separator with its escapes (`\t`, `\n`, `\x1f`) resolved; ValueError if it is empty."""
    try:
        data = text.encode().decode("unicode_escape").encode("latin-1")
    except (UnicodeDecodeError, UnicodeEncodeError):
        data = text.encode()
    if not data:
        raise ValueError("a separator cannot be empty")
    return data
