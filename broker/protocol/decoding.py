"""Writes the functions that decode: see `compiler` for the strategy and the names."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from broker.model import Uuid
from broker.protocol.compiler import LETTERS, Source, carried, least_size
from broker.protocol.primitives import array_unpackers
from broker.protocol.schema import Field, Message, StructMeta


def compile_decoder(cls: type[Message], version: int, traced: bool = False) -> Callable[..., Any]:
    """A function `(buffer, position) -> (message, end)`; traced, it takes a Trace as well."""
    return _Decoder(Source(cls, version, traced)).compile(cls)


class _Decoder:
    """Writes a decoding function."""

    def __init__(self, source: Source) -> None:
        self.s = source
        self._run: list[tuple[str, str]] = []  # (assignment target, struct letter)

    def compile(self, cls: StructMeta) -> Callable[..., Any]:
        s = self.s
        s.scope |= {"new": object.__new__, "Uuid": Uuid}
        with s.block(f"def decode(b, p{', trace' if s.traced else ''}):"):
            s.line("e = len(b)")
            s.line("m = memoryview(b)")
            self._struct(cls, 0, "")
            s.line("return o0, p")
        return s.finish("decode")

    def _struct(self, cls: StructMeta, depth: int, path: str) -> None:
        s = self.s
        in_place, tagged = carried(cls, s.version)
        s.line(f"o{depth} = new({s.constant('c', cls, cls)})")
        for field in in_place:
            self._trace(path + field.name)
            self._value(field, f"o{depth}.{field.name}", depth, f"{path}{field.name}.")
        for field in cls.fields:
            if field not in in_place:
                s.line(f"o{depth}.{field.name} = {self._default(field)}")
        s.line(f"o{depth}.unknown_tags = None")
        if s.flexible:
            self._tagged(tagged, depth, path)
        self._flush()

    def _trace(self, path: str) -> None:
        if self.s.traced:
            self._flush()
            self.s.line(f"trace.field = {path!r}; trace.position = p")

    def _flush(self) -> None:
        """Write the run collected so far, as one struct call."""
        if not self._run:
            return
        compiled = struct.Struct(">" + "".join(letter for _, letter in self._run))
        name = self.s.constant("s", compiled.format, compiled.unpack_from)
        targets = ", ".join(target for target, _ in self._run)
        self.s.line(f"{targets}, = {name}(b, p); p += {compiled.size}")
        self._run.clear()

    def _default(self, field: Field) -> str:
        if field.is_array and field.default_value() == []:
            return "[]"
        return self.s.constant("d", id(field), field.default)

    def _length(self, field: Field, letter: str) -> None:
        """Read the length into n; null gives -1. It ends the run, whose other fields it shares."""
        s = self.s
        if s.is_flexible(field):
            self._run.append(("n", "B"))
            self._flush()
            s.line("if n > 127: n, p = uv(b, p - 1)")
            s.line("n -= 1")
        else:
            self._run.append(("n", letter))
            self._flush()

    def _value(self, field: Field, target: str, depth: int, path: str) -> None:
        if field.is_array:
            self._array(field, target, depth, path)
        elif isinstance(field.type, StructMeta):
            self._nested(field, field.type, target, depth, path)
        elif field.type == "uuid":
            self._run.append((target, "16s"))
            self._flush()
            self.s.line(f"{target} = Uuid({target})")
        elif field.type in LETTERS:
            self._run.append((target, LETTERS[field.type]))
        else:
            self._length(field, "h" if field.type == "string" else "i")
            with self._unless_null(field, target):
                self._sized(str(field.type), target)

    @contextmanager
    def _unless_null(self, field: Field, target: str) -> Iterator[None]:
        with self.s.block("if n >= 0:"):
            yield
        if field.nullable_in(self.s.version):
            self.s.line(f"else: {target} = None")
        else:
            self.s.line("else: raise ValueError('null is not allowed')")

    def _sized(self, kind: str, target: str) -> None:
        value = {"string": "str(b[p:q], 'utf-8')", "bytes": "bytes(b[p:q])", "records": "m[p:q]"}
        s = self.s
        s.line("q = p + n")
        s.line("if q > e: raise ValueError(f'{n} bytes are told, {e - p} are left')")
        s.line(f"{target} = {value[kind]}; p = q")

    def _nested(
        self, field: Field, struct_type: StructMeta, target: str, depth: int, path: str
    ) -> None:
        if not field.nullable_in(self.s.version):
            self._flush()
            self._struct(struct_type, depth + 1, path)
            self.s.line(f"{target} = o{depth + 1}")
            return
        self._run.append(("n", "b"))
        self._flush()
        with self._unless_null(field, target):
            self._struct(struct_type, depth + 1, path)
            self.s.line(f"{target} = o{depth + 1}")

    def _array(self, field: Field, target: str, depth: int, path: str) -> None:
        self._length(field, "i")
        with self._unless_null(field, target):
            if isinstance(field.type, StructMeta):
                least = least_size(field.type, self.s.version, self.s.flexible)
            else:
                least = 1 if self.s.is_flexible(field) else 2
                letter = LETTERS.get(field.type)
                least = struct.calcsize(">" + letter) if letter else least
            self.s.line(
                f"if n * {least} > e - p: "
                "raise ValueError(f'{n} elements are told, {e - p} bytes are left')"
            )
            self._elements(field, target, depth, path)

    def _elements(self, field: Field, target: str, depth: int, path: str) -> None:
        s = self.s
        if (letter := LETTERS.get(str(field.type))) is not None:
            unpackers = s.constant("u", letter, array_unpackers(letter))
            s.line(
                f"{target} = list({unpackers}[n](b, p)); p += n * {struct.calcsize('>' + letter)}"
            )
            return
        inner = depth + 1
        s.line(f"l{inner} = []")
        with s.block("for _ in range(n):"):
            if isinstance(field.type, StructMeta):
                self._struct(field.type, inner, path)
            else:
                element = field._replace(is_array=False)
                self._value(element, f"o{inner}", inner, path)
                self._flush()
            s.line(f"l{inner}.append(o{inner})")
        s.line(f"{target} = l{inner}")

    def _tagged(self, tagged: list[Field], depth: int, path: str) -> None:
        s, t, k, z = self.s, f"t{depth}", f"k{depth}", f"z{depth}"
        self._trace(path + "tagged fields")
        self._run.append((t, "B"))
        self._flush()
        with s.block(f"if {t}:"):
            s.line(f"if {t} > 127: {t}, p = uv(b, p - 1)")
            with s.block(f"for _ in range({t}):"):
                s.line(f"{k}, p = uv(b, p); n, p = uv(b, p); {z} = p + n")
                s.line(
                    f"if {z} > e: raise ValueError(f'tag {{{k}}} has {{n}} bytes, {{e - p}} left')"
                )
                for field in tagged:
                    with s.block(f"if {k} == {field.tag}:"):
                        self._trace(path + field.name)
                        self._value(field, f"o{depth}.{field.name}", depth, f"{path}{field.name}.")
                        self._flush()
                        s.line(f"if p == {z}: continue")
                        s.line(f"raise ValueError(f'tag {field.tag} ends at {{p}}, not {{{z}}}')")
                s.line(f"if o{depth}.unknown_tags is None: o{depth}.unknown_tags = {{}}")
                s.line(f"o{depth}.unknown_tags[{k}] = bytes(b[p:{z}]); p = {z}")
