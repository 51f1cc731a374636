"""Generates encoding functions; see `compiler` for the strategy and the names."""

import struct
from collections.abc import Callable
from typing import Any, Final

from broker.protocol.compiler import LETTERS, SLICE_ELEMENTS, Source, carried
from broker.protocol.primitives import array_packers, uvarint
from broker.protocol.schema import Field, Message, StructMeta

_SMALL_RECORDS: Final = 2048
"""Records below this size are copied into the message: another part costs more than the copy."""


def compile_encoder(
    cls: type[Message], version: int, traced: bool = False, sliced: bool = False
) -> Callable[..., Any]:
    """A function `(message, out, parts) -> last part`; if traced, it also takes a Trace.

    If sliced, it is a generator function that returns this.
    """
    return _Encoder(Source(cls, version, traced, sliced)).compile(cls)


class _Encoder:
    """Generates one encoding function."""

    def __init__(self, source: Source) -> None:
        self.s = source
        self._run: list[tuple[str, str]] = []  # (expression, struct letter)

    def compile(self, cls: StructMeta) -> Callable[..., Any]:
        s = self.s
        s.scope |= {"section": _tagged_section, "can_copy": (bytes, bytearray, memoryview)}
        with s.block(f"def encode(o0, out, parts{', trace' if s.traced else ''}):"):
            if s.sliced:
                s.line("w = 0")
                s.line("if o0 is None: yield")  # a generator even if the message has no array
            self._struct(cls, 0, "")
            self._flush()
            s.line("return out")
        return s.finish("encode")

    def _struct(self, cls: StructMeta, depth: int, path: str) -> None:
        in_place, tagged = carried(cls, self.s.version)
        for field in cls.fields:
            if not (field.in_version(self.s.version) or field.ignorable):
                self._refuse_unless_default(field, f"o{depth}.{field.name}", path)
        for field in in_place:
            self._trace(path + field.name)
            self._value(field, f"o{depth}.{field.name}", depth, f"{path}{field.name}.")
        if self.s.flexible:
            self._tagged(tagged, depth, path)

    def _refuse_unless_default(self, field: Field, value: str, path: str) -> None:
        self._trace(path + field.name)
        text = f"version {self.s.version} does not carry it"
        self.s.line(f"if {self._differs(field, value)}: raise ValueError({text!r})")

    def _differs(self, field: Field, value: str) -> str:
        """An expression: `value` is not the field's default."""
        default = field.default_value()
        if default is None:
            return f"{value} is not None"
        if default in ([], 0, "", b"", False):
            return value
        name = self.s.constant("d", id(field), default)
        return f"{value} is not {name} and {value} != {name}"

    def _trace(self, path: str) -> None:
        if self.s.traced:
            self._flush()
            self.s.line(f"trace.field = {path!r}")

    def _flush(self) -> None:
        if self._run:
            self.s.line(self._append(self._run))
            self._run.clear()

    def _append(self, run: list[tuple[str, str]]) -> str:
        """A statement that writes the run: one struct call, or one byte."""
        if [letter for _, letter in run] in (["B"], ["x"]):
            return f"out.append({run[0][0] or 0})"
        compiled = struct.Struct(">" + "".join(letter for _, letter in run))
        name = self.s.constant("s", compiled.format, compiled.pack)
        values = ", ".join(expression for expression, letter in run if letter != "x")
        return f"out += {name}({values})"

    def _length(self, field: Field, letter: str) -> None:
        """Write n, the length (None: null) that ends the run."""
        s = self.s
        if s.is_flexible(field):
            run = self._run
            s.line("n += 1")
            s.line(f"if n < 128: {self._append([*run, ('n', 'B')])}")
            # Two bytes: the length of a few records, which most fetches at the log end return.
            two = self._append([*run, ("n & 127 | 128", "B"), ("n >> 7", "B")])
            s.line(f"elif n < 16384: {two}")
            with s.block("else:"):
                s.refuse_long_string(field)
                if run:
                    s.line(self._append(run))
                s.line("out += uvb(n)")
            run.clear()
        else:
            self._run.append(("n", letter))
            self._flush()

    def _value(self, field: Field, value: str, depth: int, path: str) -> None:
        if field.is_array:
            self._array(field, value, depth, path)
        elif isinstance(field.type, StructMeta):
            self._nested(field, field.type, value, depth, path)
        elif field.type == "uuid":
            # struct would truncate or pad what is not 16 bytes, and accept any object as a bool.
            self.s.line(f"if len({value}) != 16: raise ValueError('a uuid has 16 bytes')")
            self._run.append((value, "16s"))
        elif field.type == "bool":
            self.s.line(f"if {value}.__class__ is not bool: raise ValueError('a bool is wanted')")
            self._run.append((value, "?"))
        elif field.type in LETTERS:
            self._run.append((value, LETTERS[field.type]))
        else:
            self._sized(field, value)

    def _sized(self, field: Field, value: str) -> None:
        """A string, bytes or records: the length, then the bytes."""
        s = self.s
        as_bytes = f"{value}.encode()" if field.type == "string" else value
        if field.nullable_in(s.version):
            s.line(f"v = {value}")
            s.line("if v is None: n = -1; v = b''")
            s.line(f"else: {'v = v.encode(); ' if field.type == 'string' else ''}n = len(v)")
        else:
            s.line(f"v = {as_bytes}; n = len(v)")
        self._length(field, "h" if field.type == "string" else "i")
        if field.type != "records":
            s.line("out += v")
            return
        s.line(f"if isinstance(v, can_copy) and len(v) < {_SMALL_RECORDS}: out += v")
        s.line("else: parts.append(out); parts.append(v); out = bytearray()")

    def _nested(
        self, field: Field, struct_type: StructMeta, value: str, depth: int, path: str
    ) -> None:
        s, inner = self.s, depth + 1
        self._flush()  # the run may refer to another struct at the same depth
        s.line(f"o{inner} = {value}")
        if not field.nullable_in(s.version):
            self._struct(struct_type, inner, path)
            return
        s.line(f"if o{inner} is None: out += b'\\xff'")
        with s.block("else:"):
            s.line("out += b'\\x01'")
            self._struct(struct_type, inner, path)
            self._flush()

    def _array(self, field: Field, value: str, depth: int, path: str) -> None:
        s, inner = self.s, depth + 1
        s.line(f"l{inner} = {value}")
        if field.nullable_in(s.version):
            s.line(f"if l{inner} is None: n = -1; l{inner} = ()")
            s.line(f"else: n = len(l{inner})")
        else:
            s.line(f"n = len(l{inner})")
        self._length(field, "i")
        if (letter := LETTERS.get(str(field.type))) is not None:
            packers = s.constant("k", letter, array_packers("", letter))
            if s.sliced:
                with s.block(f"for n in range(0, len(l{inner}), {SLICE_ELEMENTS}):"):
                    s.line(f"v = l{inner}[n:n + {SLICE_ELEMENTS}]")
                    s.line(f"out += {packers}[len(v)](*v)")
                    s.pause("len(v)")
                return
            s.line(f"if l{inner}: out += {packers}[len(l{inner})](*l{inner})")
            return
        with s.block(f"for o{inner} in l{inner}:"):
            s.pause()
            if isinstance(field.type, StructMeta):
                self._struct(field.type, inner, path)
            else:
                self._value(field.element(), f"o{inner}", inner, path)
            self._flush()
            s.line("pass")

    def _tagged(self, tagged: list[Field], depth: int, path: str) -> None:
        """End the run with an empty section; replace it if there are tagged fields."""
        s, found = self.s, f"g{depth}"
        self._trace(path + "tagged fields")
        self._run.append(("", "x"))
        self._flush()
        if not tagged:
            with s.block(f"if o{depth}.unknown_tags:"):
                s.line(f"out[-1:] = section((), o{depth}.unknown_tags)")
            return
        s.line(f"{found} = []")
        for field in tagged:
            value = f"o{depth}.{field.name}"
            with s.block(f"if {self._differs(field, value)}:"):
                self._trace(path + field.name)
                s.line(f"h{depth} = out; out = bytearray()")
                self._value(field, value, depth, f"{path}{field.name}.")
                self._flush()
                s.line(f"{found}.append(({field.tag}, out)); out = h{depth}")
        with s.block(f"if {found} or o{depth}.unknown_tags:"):
            s.line(f"out[-1:] = section({found}, o{depth}.unknown_tags)")


def _tagged_section(known: list[tuple[int, bytes]], unknown: dict[int, bytes] | None) -> bytes:
    """A tagged section: the number of fields, then each with its tag and size, in tag order."""
    fields = sorted([*known, *(unknown or {}).items()])
    pieces = [uvarint(len(fields))]
    for tag, data in fields:
        pieces += uvarint(tag), uvarint(len(data)), data
    return b"".join(pieces)
