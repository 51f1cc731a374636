"""Generates decoding functions; see `compiler` for the strategy and the names."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from broker.model import Uuid
from broker.protocol.compiler import LETTERS, SLICE_ELEMENTS, Source, carried, least_size
from broker.protocol.primitives import array_unpackers
from broker.protocol.schema import Field, Message, StructMeta

_FEW_ROWS: Final = 3
"""Up to this number, structs are read faster one by one than in bulk."""

_RANGES: Final = tuple(range(n) for n in range(64))
_TIMES_N: Final = f"for _ in R[n] if n < {len(_RANGES)} else range(n):"
"""Ranges made in advance: such a loop starts in half the time, and most arrays are short."""

_EMPTY: Final = {"string": "''", "bytes": "b''"}
"""Values for fields that are often empty, and are then not read at all."""

_SMALL_BUFFER: Final = 64 * 1024
"""Small fields are read fastest from bytes; up to this size a copy costs less than it saves. Larger
buffers are mostly requests full of records, of which only the header is read."""


def compile_decoder(
    cls: type[Message], version: int, traced: bool = False, sliced: bool = False
) -> Callable[..., Any]:
    """A function `(buffer, position) -> (message, end)`; if traced, it also takes a Trace.

    If sliced, it is a generator function that returns this.
    """
    return _Decoder(Source(cls, version, traced, sliced)).compile(cls)


@cache
def _bare(cls: StructMeta, version: int) -> type:
    """The class of decoded structs: a subclass that spends nothing on fields this version lacks.

    It has no `__init__`; fields that a version leaves at their default are attributes of the class.
    """
    namespace: dict[str, Any] = {
        field.name: field.default
        for field in _not_in_place(cls, version)
        if field.default_value() != []
    }
    namespace |= {"__slots__": (), "__init__": object.__init__, "__module__": cls.__module__}
    namespace["unknown_tags"] = None
    return type.__new__(StructMeta, cls.__name__, (cls,), namespace)


def _not_in_place(cls: StructMeta, version: int) -> list[Field]:
    return [f for f in cls.fields if not f.in_version(version) or f.tag is not None]


def _has_records(cls: StructMeta) -> bool:
    return any(
        field.type == "records" or (isinstance(field.type, StructMeta) and _has_records(field.type))
        for field in cls.fields
    )


def _has_arrays(cls: StructMeta) -> bool:
    """Whether there may be enough fields that a copy of the buffer pays off."""
    return any(
        field.is_array or (isinstance(field.type, StructMeta) and _has_arrays(field.type))
        for field in cls.fields
    )


class _Decoder:
    """Generates one decoding function."""

    def __init__(self, source: Source) -> None:
        self.s = source
        self._run: list[tuple[str, str]] = []  # (assignment target, struct letter)
        self._has_records = False

    def compile(self, cls: StructMeta) -> Callable[..., Any]:
        s = self.s
        self._has_records = _has_records(cls)
        s.scope |= {"Uuid": Uuid, "R": _RANGES}
        with s.block(f"def decode(b, p{', trace' if s.traced else ''}):"):
            s.line("e = len(b)")
            if s.sliced:
                s.line("c = w = 0")
                s.line("if e < 0: yield")  # a generator even if the message has no array
            if self._has_records:
                s.line("m = memoryview(b)")
            elif _has_arrays(cls):
                s.line(f"if b.__class__ is not bytes and e <= {_SMALL_BUFFER}: b = bytes(b)")
            self._struct(cls, 0, "")
            s.line("return o0, p")
        return s.finish("decode")

    def _struct(self, cls: StructMeta, depth: int, path: str) -> None:
        s = self.s
        in_place, tagged = carried(cls, s.version)
        self._new(cls, depth)
        for field in in_place:
            self._trace(path + field.name)
            self._value(field, f"o{depth}.{field.name}", depth, f"{path}{field.name}.")
        if s.flexible:
            self._tagged(cls, tagged, depth, path)
        self._flush()

    def _new(self, cls: StructMeta, depth: int) -> None:
        s = self.s
        s.line(f"o{depth} = {s.constant('c', cls, _bare(cls, s.version))}()")
        for field in _not_in_place(cls, s.version):
            if field.default_value() == []:
                s.line(f"o{depth}.{field.name} = []")

    def _become_whole(self, cls: StructMeta, depth: int) -> None:
        """Give the struct its own value for fields that are otherwise attributes of the class."""
        s = self.s
        s.line(f"o{depth}.__class__ = {s.constant('w', cls, cls)}")
        for field in _not_in_place(cls, s.version):
            default = s.constant("d", id(field), field.default)
            value = "[]" if field.default_value() == [] else default
            s.line(f"o{depth}.{field.name} = {value}")
        s.line(f"o{depth}.unknown_tags = None")

    def _trace(self, path: str) -> None:
        if self.s.traced:
            self._flush()
            self.s.line(f"trace.field = {path!r}; trace.position = p")

    def _flush(self) -> None:
        """Emit the run collected so far, as one struct call."""
        if not self._run:
            return
        if len(self._run) == 1 and self._run[0][1] == "B":
            self.s.line(f"{self._run[0][0]} = b[p]; p += 1")
            self._run.clear()
            return
        compiled = struct.Struct(">" + "".join(letter for _, letter in self._run))
        name = self.s.constant("s", compiled.format, compiled.unpack_from)
        targets = ", ".join(target for target, _ in self._run)
        self.s.line(f"{targets}, = {name}(b, p); p += {compiled.size}")
        self._run.clear()

    def _length(self, field: Field, letter: str) -> None:
        """Read the length into n (-1 for null). It ends the run, and is read together with it."""
        s = self.s
        if s.is_flexible(field):
            self._run.append(("n", "B"))
            self._flush()
            with s.block("if n > 127:"):  # two or three bytes: frequent enough to read inline
                s.line("k = b[p]")
                s.line("if k < 128: n += (k << 7) - 128; p += 1")
                s.line("elif b[p + 1] < 128: n += (k << 7) + (b[p + 1] << 14) - 16512; p += 2")
                s.line("else: n, p = uv(b, p - 1)")
                s.refuse_long_string(field)
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
            with self._unless_null(field, target, _EMPTY.get(str(field.type))):
                self._sized(str(field.type), target)

    @contextmanager
    def _unless_null(self, field: Field, target: str, empty: str | None = None) -> Iterator[None]:
        """The lines inside read n bytes or elements; for none, the value is `empty`, if given."""
        with self.s.block("if n >= 0:" if empty is None else "if n > 0:"):
            yield
        if empty is not None:
            self.s.line(f"elif n == 0: {target} = {empty}")
        if field.nullable_in(self.s.version):
            self.s.line(f"else: {target} = None")
        else:
            self.s.line("else: raise ValueError('null is not allowed')")

    def _sized(self, kind: str, target: str) -> None:
        value = {
            "string": "str(b[p:q], 'utf-8', 'replace')",
            "bytes": "bytes(b[p:q])",
            "records": "m[p:q]",
        }
        s = self.s
        s.line("q = p + n")
        s.line("if q > e: raise ValueError(f'{n} bytes announced, {e - p} left')")
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
        with self._unless_null(field, target, "[]"):
            if (letter := LETTERS.get(str(field.type))) is not None:
                self._numbers(letter, target, depth + 1)
                return
            self.s.line(
                f"if n * {self._least(field)} > e - p: "
                "raise ValueError(f'{n} elements announced, {e - p} bytes left')"
            )
            self._elements(field, depth + 1, path)
            self.s.line(f"{target} = l{depth + 1}")

    def _numbers(self, letter: str, target: str, depth: int) -> None:
        """Read n numbers. No check here: the unpacker checks by itself before it allocates."""
        s = self.s
        unpackers = s.constant("u", letter, array_unpackers(letter))
        size = struct.calcsize(">" + letter)
        if not s.sliced:
            s.line(f"{target} = [*{unpackers}[n](b, p)]; p += n * {size}")
            return
        s.line(f"if n * {size} > e - p: raise IndexError")
        s.count("n")
        s.line(f"l{depth} = []; q = p + n * {size}")
        with s.block("while p < q:"):
            s.line(f"n = min({SLICE_ELEMENTS}, (q - p) // {size})")
            s.line(f"l{depth} += {unpackers}[n](b, p); p += n * {size}")
            s.pause("n")
        s.line(f"{target} = l{depth}")

    def _least(self, field: Field) -> int:
        """The smallest size of an element."""
        if isinstance(field.type, StructMeta):
            return least_size(field.type, self.s.version, self.s.flexible)
        return 16 if field.type == "uuid" else 1 if self.s.is_flexible(field) else 2

    def _elements(self, field: Field, depth: int, path: str) -> None:
        """Read n elements into the list of this depth."""
        s = self.s
        kind = field.type
        s.line(f"l{depth} = []")
        s.count("n")
        if not isinstance(kind, StructMeta):
            with s.block(_TIMES_N):
                self._value(field.element(), f"o{depth}", depth, path)
                self._flush()
                s.line(f"l{depth}.append(o{depth})")
                s.pause()
            return
        if self._has_fixed_size(kind):
            with s.block(f"if n > {_FEW_ROWS}:"):
                self._rows(kind, depth)
        with s.block(_TIMES_N):
            self._struct(kind, depth, path)
            s.line(f"l{depth}.append(o{depth})")
            s.pause()

    def _has_fixed_size(self, cls: StructMeta) -> bool:
        in_place, _ = carried(cls, self.s.version)
        return not self.s.traced and all(f.type in LETTERS and not f.is_array for f in in_place)

    def _rows(self, cls: StructMeta, depth: int) -> None:
        """Read n structs of one size in bulk, unless one of them has tagged fields."""
        s = self.s
        in_place, _ = carried(cls, s.version)
        letters = "".join(LETTERS[str(field.type)] for field in in_place)
        row = struct.Struct(f">{letters}{'x' if s.flexible else ''}")
        rows = s.constant("r", row.format, row.iter_unpack)
        targets = ", ".join(f"o{depth}.{field.name}" for field in in_place)
        no_tags = f"bytes(b[p + {row.size - 1}:q:{row.size}]).count(0) == n"
        s.line(f"q = p + n * {row.size}")
        with s.block(f"if {no_tags}:" if s.flexible else "if n:"):
            with s.block(f"for r in {rows}(b[p:q]):"):
                self._new(cls, depth)
                s.line(f"{targets}, = r")
                s.line(f"l{depth}.append(o{depth})")
                s.pause()
            s.line("p = q; n = 0")

    def _tagged(self, cls: StructMeta, tagged: list[Field], depth: int, path: str) -> None:
        s, t, k, z = self.s, f"t{depth}", f"k{depth}", f"z{depth}"
        self._trace(path + "tagged fields")
        self._run.append((t, "B"))
        self._flush()
        with s.block(f"if {t}:"):
            s.line(f"if {t} > 127: {t}, p = uv(b, p - 1)")
            s.count(t)
            self._become_whole(cls, depth)
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
                s.pause()
