"""The schema of JSON values in Spark's DDL: `id INT, price DECIMAL(10, 2), tags ARRAY<STRING>`."""

import re
from typing import Final

import pyarrow as pa

from kctl.cli.errors import CliError, ExitStatus

_TYPES: Final = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}
_SHOWN: Final = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, BINARY, DATE, "
    "TIMESTAMP, ARRAY<…> and STRUCT<NAME: TYPE, …>"
)
_TOKEN: Final = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|'(?P<text>(?:[^'\\]|\\.)*)'|(?P<word>\w+)|(?P<mark>[<>(),:]))"
)
_MAX_DIGITS: Final = 38


def parse_ddl(ddl: str) -> pa.DataType:
    """The struct type of a DDL; CliError if it is not valid."""
    try:
        parser = _Parser(ddl)
        kind = parser.fields(end="")
    except ValueError as error:
        raise CliError(
            f"--schema: {ddl!r} is not valid: {error}",
            f"NAME TYPE, …; types are {_SHOWN}",
            ExitStatus.USAGE,
        ) from error
    return kind


class _Parser:
    """A recursive descent over tokens; ValueError says what is wrong.

    A token is (its kind, its text); `_at` is the index of the next one.
    """

    def __init__(self, ddl: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._at = position = 0
        while ddl[position:].strip():
            found = _TOKEN.match(ddl, position)
            if found is None:
                raise ValueError(f"unexpected {ddl[position:].strip()[:1]}")
            kind = found.lastgroup or ""
            self._tokens.append((kind, found[kind].replace("``", "`")))
            position = found.end()

    def fields(self, end: str) -> pa.DataType:
        """Fields up to the mark `end`, or up to the end of the text."""
        found: list[pa.Field] = []
        while self._peek() != ("mark", end) and self._peek()[0]:
            found.append(self._field())
            if self._peek() == ("mark", ","):
                self._next()
            elif self._peek() != ("mark", end) and self._peek()[0]:
                raise ValueError(f"unexpected {self._peek()[1]} after {found[-1].name}")
        if end:
            self._expect(end)
        names = [field.name for field in found]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"field {repeated[0]} is repeated")
        return pa.struct(found)

    def _field(self) -> pa.Field:
        kind, name = self._next()
        if kind not in ("word", "quoted"):
            raise ValueError(f"expected a name, found {name or 'the end'}")
        if self._peek() == ("mark", ":"):
            self._next()
        field = pa.field(name, self._type())
        if self._word() == "NOT":
            raise ValueError("NOT NULL is not supported: a value may lack any field")
        if self._word() == "COMMENT":
            self._next()
            if self._next()[0] != "text":
                raise ValueError("COMMENT needs a quoted string")
        return field

    def _type(self) -> pa.DataType:
        kind, name = self._next()
        outer = name.upper()
        if kind == "word" and outer == "ARRAY":
            self._expect("<")
            inner = self._type()
            self._expect(">")
            return pa.list_(inner)
        if kind == "word" and outer == "STRUCT":
            self._expect("<")
            return self.fields(end=">")
        if kind == "word" and outer in ("DECIMAL", "DEC", "NUMERIC"):
            return self._decimal()
        if kind != "word" or outer not in _TYPES:
            raise ValueError(f"unknown type {name or '(none)'}")
        return _TYPES[outer]

    def _decimal(self) -> pa.DataType:
        digits, scale = 10, 0  # Spark's defaults
        if self._peek() == ("mark", "("):
            self._next()
            digits = self._number()
            if self._peek() == ("mark", ","):
                self._next()
                scale = self._number()
            self._expect(")")
        if not 0 <= scale <= digits <= _MAX_DIGITS or not digits:
            raise ValueError(f"DECIMAL({digits}, {scale}) does not exist")
        return pa.decimal128(digits, scale)

    def _number(self) -> int:
        _, text = self._next()
        if not text.isdecimal():
            raise ValueError(f"expected a number, found {text or 'the end'}")
        return int(text)

    def _word(self) -> str:
        kind, text = self._peek()
        return text.upper() if kind == "word" else ""

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, mark: str) -> None:
        if (found := self._next()) != ("mark", mark):
            raise ValueError(f"expected {mark}, found {found[1] or 'the end'}")
