"""Generation of codecs: a Python function per message, version and direction.

Strategy. What costs time in Python is calls, small objects and attribute look-ups, so a whole
message becomes one flat function: nested structs and arrays are nested loops in it, and fields of
fixed size that stand next to each other, together with the length that follows them, are read or
written by one `struct` call (a *run*). A flexible length is a varint, but nearly always one byte:
the run reads that byte and the rare longer one is read again by `read_uvarint`.

    o1.error_code, o1.partition_index, o1.leader_id, n = s7(b, p); p += 11

Names in the compiled code: b buffer, p position, e end, m memoryview, oD the struct at depth D,
lD the list being filled, n a length, q the end of a field, tD kD zD count, number and end of tagged
fields, out the bytes written so far, parts finished parts.

`decoding` and `encoding` generate the code. Lengths are checked against the remaining bytes before
anything is allocated for them.

Every function also exists *sliced*, for large messages: as a generator that yields every few
hundred elements (w), so that the event loop can serve other clients meanwhile. A decoder counts
the announced elements in c and raises when there are more than MAX_ELEMENTS: an element of one
byte becomes an object of a hundred.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from broker.protocol.primitives import MAX_STRING_BYTES, read_uvarint, uvarint
from broker.protocol.schema import Field, Message, StructMeta

LETTERS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}
"""Types of fixed size, with their struct format."""

MAX_ELEMENTS: Final = 3_000_000
"""The most array elements and tagged fields in one message. A request for every partition of the
largest Kafka clusters has a tenth of that."""

SLICE_ELEMENTS: Final = 256
"""Elements between two yields of a sliced function."""


class Trace:
    """The position of traced code: the current field, and its first byte."""

    def __init__(self) -> None:
        self.field = "message"
        self.position = 0


class Source:
    """The lines of a function being generated, and the constants it uses."""

    def __init__(
        self, cls: type[Message], version: int, traced: bool = False, sliced: bool = False
    ) -> None:
        self.version = version
        self.flexible = version >= cls.flexible
        self.traced = traced
        self.sliced = sliced
        self.scope: dict[str, Any] = {"uv": read_uvarint, "uvb": uvarint}
        self._names: dict[tuple[str, Any], str] = {}
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self._lines.append(" " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines added inside are indented below `head`."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def constant(self, prefix: str, key: Any, value: Any) -> str:
        """The name of `value` in the function's globals; one per key."""
        if (prefix, key) not in self._names:
            name = f"{prefix}{len(self._names)}"
            self._names[prefix, key] = name
            self.scope[name] = value
        return self._names[prefix, key]

    def is_flexible(self, field: Field) -> bool:
        """Whether the field's length is a varint here."""
        return self.flexible and field.flexible

    def count(self, elements: str) -> None:
        """Count elements that are about to be read; only in sliced functions."""
        if self.sliced:
            self.line(f"c += {elements}")
            text = f"more than {MAX_ELEMENTS:,} elements"
            self.line(f"if c > {MAX_ELEMENTS}: raise ValueError('{text}')")

    def pause(self, elements: str = "1") -> None:
        """Count elements that were processed, and yield every SLICE_ELEMENTS of them.

        Only in sliced functions. A message with fewer elements never yields.
        """
        if self.sliced:
            self.line(f"w += {elements}")
            self.line(f"if w >= {SLICE_ELEMENTS}: w = 0; yield")

    def refuse_long_string(self, field: Field) -> None:
        """Reject lengths n, read from a varint, that Kafka does not accept for strings."""
        if field.type == "string" and not field.is_array:
            text = f"{{n - 1}} bytes announced, a string has {MAX_STRING_BYTES} at most"
            self.line(f"if n > {MAX_STRING_BYTES + 1}: raise ValueError(f'{text}')")

    def finish(self, name: str) -> Callable[..., Any]:
        """Compile the lines; returns the function called `name`."""
        # The source contains field names and numbers of declarations, nothing from the wire.
        exec("\n".join(self._lines), self.scope)  # noqa: S102
        compiled: Callable[..., Any] = self.scope[name]
        return compiled


def carried(cls: StructMeta, version: int) -> tuple[list[Field], list[Field]]:
    """The fields of this version: the untagged ones, and the tagged ones in tag order."""
    fields = [field for field in cls.fields if field.in_version(version)]
    tagged = [field for field in fields if field.tag is not None]
    return [f for f in fields if f.tag is None], sorted(tagged, key=lambda f: f.tag or 0)


def least_size(cls: StructMeta, version: int, flexible: bool) -> int:
    """The smallest size of an encoded struct; at least 1, so that a count is always bounded."""
    size = 1 if flexible else 0
    for field in carried(cls, version)[0]:
        compact = flexible and field.flexible
        if field.is_array or field.type in ("bytes", "records"):
            size += 1 if compact else 4
        elif field.type == "string":
            size += 1 if compact else 2
        elif field.type == "uuid":
            size += 16
        elif isinstance(field.type, str):
            size += struct.calcsize(">" + LETTERS[field.type])
        else:
            size += 1 if field.nullable_in(version) else least_size(field.type, version, flexible)
    return max(size, 1)
