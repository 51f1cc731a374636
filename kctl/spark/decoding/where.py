"""`--where`: a condition on rows in a small part of SQL, as an Arrow expression.

    partition = 3 AND timestamp >= '2026-01-31T12:00' AND (key LIKE 'user-%' OR key IS NULL)
    value.amount > 100 AND NOT value.country IN ('CH', 'DE')

Names are columns, with dots for fields of JSON values. A text compared with a column of bytes is
its UTF-8, and compared with a timestamp it is a time in ISO 8601 (UTC without a zone). A comparison
with null is not true, as in SQL.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kctl.cli.errors import CliError, usage_error

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.]) |
    (?P<text>'(?:[^']|'')*') |
    (?P<name>`[^`]+`|[A-Za-z_]\w*(?:\.(?:`[^`]+`|[A-Za-z_]\w*))*) |
    (?P<sign><=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE,
)
_WORDS: Final = {"AND", "OR", "NOT", "IN", "LIKE", "IS", "NULL", "TRUE", "FALSE", "BETWEEN"}
_COMPARE: Final = {
    "=": pc.Expression.__eq__,
    "==": pc.Expression.__eq__,
    "!=": pc.Expression.__ne__,
    "<>": pc.Expression.__ne__,
    "<": pc.Expression.__lt__,
    "<=": pc.Expression.__le__,
    ">": pc.Expression.__gt__,
    ">=": pc.Expression.__ge__,
}


def where_expression(text: str, schema: pa.Schema) -> pc.Expression:
    """The condition for a table of this schema; a usage error names the part that is not valid."""
    try:
        parser = _Parser(_tokens(text), schema)
        expression = parser.disjunction()
        parser.end()
        pa.Table.from_batches([], schema).filter(expression)  # types that cannot be compared
    except (ValueError, TypeError, NotImplementedError, KeyError) as error:
        raise _invalid(text, str(error)) from error
    return expression


def _invalid(text: str, reason: str) -> CliError:
    hint = "e.g. \"partition = 3 AND value.amount > 100 AND key LIKE 'user-%'\""
    return usage_error(f"--where {text}: {reason.splitlines()[0] if reason else 'invalid'}", hint)


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text.rstrip()):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"unexpected {text[at:].strip()[:20]!r}")
        kind, word = str(token.lastgroup), token[str(token.lastgroup)]
        if kind == "name" and word.upper() in _WORDS:
            kind, word = "word", word.upper()
        found.append((kind, word))
        at = token.end()
    return found


class _Parser:
    """Recursive descent: OR, then AND, then NOT, then comparisons."""

    def __init__(self, tokens: Sequence[tuple[str, str]], schema: pa.Schema) -> None:
        self._tokens = [*tokens, ("end", "the end")]
        self._schema = schema
        self._at = 0

    def disjunction(self) -> pc.Expression:
        """Conditions joined by OR."""
        result = self._conjunction()
        while self._accept("word", "OR"):
            result = result | self._conjunction()
        return result

    def end(self) -> None:
        """ValueError unless all was read."""
        self._expect("end", "the end")

    def _conjunction(self) -> pc.Expression:
        result = self._condition()
        while self._accept("word", "AND"):
            result = result & self._condition()
        return result

    def _condition(self) -> pc.Expression:
        if self._accept("word", "NOT"):
            return ~self._condition()
        if self._accept("sign", "("):
            inner = self.disjunction()
            self._expect("sign", ")")
            return inner
        return self._comparison()

    def _comparison(self) -> pc.Expression:
        field, kind = self._field()
        if self._accept("word", "IS"):
            is_negated = self._accept("word", "NOT")
            self._expect("word", "NULL")
            return field.is_valid() if is_negated else field.is_null()
        if self._accept("word", "NOT"):
            return ~self._membership(field, kind)
        if self._peek() in (("word", "IN"), ("word", "LIKE"), ("word", "BETWEEN")):
            return self._membership(field, kind)
        part, sign = self._next()
        if part != "sign" or sign not in _COMPARE:
            raise ValueError(f"expected a comparison instead of {sign!r}")
        return _COMPARE[sign](field, self._value(kind))

    def _membership(self, field: pc.Expression, kind: pa.DataType) -> pc.Expression:
        if self._accept("word", "LIKE"):
            if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
                raise ValueError(f"LIKE needs text, not {kind}")
            return pc.match_like(field, self._text())
        if self._accept("word", "BETWEEN"):
            low = self._value(kind)
            self._expect("word", "AND")
            return (field >= low) & (field <= self._value(kind))
        self._expect("word", "IN")
        self._expect("sign", "(")
        values = [self._value(kind)]
        while self._accept("sign", ","):
            values.append(self._value(kind))
        self._expect("sign", ")")
        return field.isin(pa.array([value.as_py() for value in values], kind))

    def _field(self) -> tuple[pc.Expression, pa.DataType]:
        part, name = self._next()
        if part != "name":
            raise ValueError(f"expected a column instead of {name!r}")
        path = [part.strip("`") for part in re.findall(r"`[^`]+`|[^.`]+", name)]
        if path[0] not in self._schema.names:
            raise ValueError(f"no column {path[0]}; columns: {', '.join(self._schema.names)}")
        kind = self._schema.field(path[0]).type
        for part in path[1:]:
            if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
                raise ValueError(f"no field {part} in {name}")
            kind = kind.field(part).type
        return pc.field(tuple(path) if len(path) > 1 else path[0]), kind

    def _value(self, kind: pa.DataType) -> pa.Scalar:
        part, text = self._next()
        if part == "word" and text in ("TRUE", "FALSE"):
            return pa.scalar(text == "TRUE").cast(kind)
        if part == "number" and _is_number(kind):
            return _number(text, kind)
        if part == "text":
            return _text_scalar(text[1:-1].replace("''", "'"), kind)
        raise ValueError(f"{text!r} is not a value of {kind}")

    def _text(self) -> str:
        part, text = self._next()
        if part != "text":
            raise ValueError(f"expected a quoted string instead of {text!r}")
        return text[1:-1].replace("''", "'")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at]

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _accept(self, kind: str, text: str) -> bool:
        if self._peek() != (kind, text):
            return False
        self._next()
        return True

    def _expect(self, kind: str, text: str) -> None:
        if not self._accept(kind, text):
            raise ValueError(f"expected {text} instead of {self._peek()[1]!r}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _number(text: str, kind: pa.DataType) -> pa.Scalar:
    """A number as a type that compares exactly: 1.5 stays 1.5 beside an integer column."""
    number: Any = int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    if pa.types.is_integer(kind) and isinstance(number, int):
        return pa.scalar(number, pa.int64())
    return pa.scalar(float(number), pa.float64())


def _text_scalar(text: str, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_timestamp(kind):
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return pa.scalar(moment, kind)
    if pa.types.is_binary(kind):
        return pa.scalar(text.encode(), kind)
    if pa.types.is_string(kind):
        return pa.scalar(text, kind)
    raise ValueError(f"{text!r} is not a value of {kind}")
