"""Random messages, derived from their declarations."""

from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from broker.model import Uuid
from broker.protocol.schema import Field, Message, StructMeta

_PRIMITIVES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
    # Short ones, and ones whose length needs a second byte as a varint.
    "string": st.text(max_size=4) | st.integers(120, 140).map("s".__mul__),
    "bytes": st.binary(max_size=4) | st.integers(120, 140).map(bytes),
    # Small records are copied into the message, large ones stay a part of their own.
    "records": st.binary(max_size=4) | st.sampled_from((bytes(2047), bytes(2048), bytes(20_000))),
}

_UNKNOWN_TAGS = st.dictionaries(
    st.integers(1000, 2**31 - 1), st.binary(max_size=4), min_size=1, max_size=2
)


@cache
def messages(cls: type[Message], version: int) -> st.SearchStrategy[Message]:
    """Messages that this version can carry."""
    return _structs(cls, version, version >= cls.flexible)


@cache
def _structs(cls: StructMeta, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    fields = [field for field in cls.fields if field.in_version(version)]
    values = st.fixed_dictionaries({f.name: _values(f, version, flexible) for f in fields})
    tags = st.none() | _UNKNOWN_TAGS if flexible else st.none()

    def build(values: dict[str, Any], unknown_tags: dict[int, bytes] | None) -> Any:
        struct = cls(**values)
        struct.unknown_tags = unknown_tags
        return struct

    return st.builds(build, values, tags)


def _values(field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if isinstance(field.type, StructMeta):
        value = _structs(field.type, version, flexible)
    else:
        value = _PRIMITIVES[field.type]
    if field.is_array:
        value = st.lists(value, max_size=5 if _is_flat(field) else 2)
    return st.none() | value if field.nullable_in(version) else value


def _is_flat(field: Field) -> bool:
    """Whether an element has no arrays of its own; then there may be more of them."""
    return not isinstance(field.type, StructMeta) or not any(
        inner.is_array for inner in field.type.fields
    )
