"""The largest plausible requests of every API: one array of the request repeated very often.

They are generated from the schemas, so a new API or array is covered without another line. Each
array of each request gets a request in which it has as many elements as fit; the other arrays have
one element. Elements differ in their first name or number, so that nothing can be looked up once
for all.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from broker.model import Uuid
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import encode
from broker.protocol.headers import RequestHeader, request_header_version
from broker.protocol.messages import request_class
from broker.protocol.schema import Field, Request, Struct, StructMeta

SCALARS: dict[str, Any] = {
    "bool": False,
    "float64": 0.0,
    "uuid": Uuid.ZERO,
    "string": "x",
    "bytes": b"",
    "records": None,
    "int8": 0,
    "int16": 1,
    "uint16": 1,
    "uint32": 1,
}
NAMES = {"topic": "orders", "topic_name": "orders", "group_id": "group", "protocol_type": "p"}
ACCEPTED = {"broker_epoch": -1, "controller_epoch": 1, "leader": 1, "leader_epoch": 1}
"""Numbers that get a request of a controller past its first checks."""
ENDS_THE_BROKER = frozenset({ApiKey.CONTROLLED_SHUTDOWN})


class Hostile(NamedTuple):
    """One request with very many elements."""

    api_key: ApiKey
    version: int
    array: str
    """The repeated array, e.g. `topics.partitions`."""
    num_elements: int
    frame: bytes
    """With its size."""

    def __str__(self) -> str:
        return f"{self.api_key.name} v{self.version} {self.array} x {self.num_elements:,}"


def arrays(cls: StructMeta, version: int, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays of a message, e.g. ("topics", "partitions")."""
    for field in cls.fields:
        if not field.in_version(version):
            continue
        if field.is_array:
            yield (*path, field.name)
        if isinstance(field.type, StructMeta):
            yield from arrays(field.type, version, (*path, field.name))


def hostile_requests(
    api_key: ApiKey,
    max_bytes: int,
    max_elements: int,
    version: int | None = None,
    *,
    array: str | None = None,
) -> Iterator[Hostile]:
    """A request for each array of an API, or for one; in its highest version if none is given."""
    cls = request_class(api_key)
    version = cls.versions[1] if version is None else version
    for path in arrays(cls, version):
        if array not in (None, ".".join(path)):
            continue
        few, many = (_frame(cls, version, path, count) for count in (100, 200))
        per_element = max((len(many) - len(few)) / 100 + 2, 1)
        count = min(int(max_bytes / per_element), max_elements // _elements_in(cls, version, path))
        yield Hostile(api_key, version, ".".join(path), count, _frame(cls, version, path, count))


def _elements_in(cls: StructMeta, version: int, path: tuple[str, ...]) -> int:
    """One for an element of the array at `path`, and one for each array inside of it."""
    field = next(field for field in cls.fields if field.name == path[0])
    if not isinstance(field.type, StructMeta):
        return 1
    if len(path) > 1:
        return _elements_in(field.type, version, path[1:])
    return 1 + sum(1 for _ in arrays(field.type, version))


def tagged_fields(count: int) -> Hostile:
    """Metadata with very many tagged fields in its header."""
    cls = request_class(ApiKey.METADATA)
    message = cls(topics=[])  # type: ignore[call-arg]
    return Hostile(ApiKey.METADATA, 9, "header tags", count, _framed(message, 9, count))


def _frame(cls: type[Request[Any]], version: int, path: tuple[str, ...], count: int) -> bytes:
    message = _struct(cls, version, path, count, 0)
    assert isinstance(message, Request)
    return _framed(message, version)


def _framed(message: Request[Any], version: int, num_tags: int = 0) -> bytes:
    header = RequestHeader(
        request_api_key=message.api_key,
        request_api_version=version,
        correlation_id=1,
        client_id="hostile",
    )
    if num_tags:
        header.unknown_tags = dict.fromkeys(range(num_tags), b"")
    data = encode(header, request_header_version(message.api_key, version))
    data += encode(message, version)
    return len(data).to_bytes(4, "big") + data


def _struct(
    cls: StructMeta, version: int, path: tuple[str, ...], count: int, number: int
) -> Struct:
    """A struct whose first name or number contains `number`."""
    values: dict[str, Any] = {}
    is_numbered = False
    for field in cls.fields:
        if not field.in_version(version) or (field.tag is not None and (field.name,) != path[:1]):
            continue
        inner = path[1:] if path[:1] == (field.name,) else ()
        if field.is_array:
            wanted = count if path == (field.name,) else 1
            element = field.element()
            values[field.name] = [
                _value(element, version, inner, count, n, False) for n in range(wanted)
            ]
        else:
            can_number = (
                not is_numbered
                and field.type in ("string", "int32", "int64")
                and field.name not in ACCEPTED
            )
            is_numbered = is_numbered or can_number
            values[field.name] = _value(field, version, inner, count, number, not can_number)
    built: Struct = cls(**values)
    return built


def _value(
    field: Field, version: int, path: tuple[str, ...], count: int, number: int, is_fixed: bool
) -> Any:
    kind = field.type
    if isinstance(kind, StructMeta):
        return _struct(kind, version, path, count, number)
    if kind in SCALARS:
        if kind == "string" and not is_fixed and number:
            return f"{NAMES.get(field.name, 'n')}{number}"
        return NAMES.get(field.name, SCALARS[kind]) if kind == "string" else SCALARS[kind]
    if field.name in ACCEPTED:
        return ACCEPTED[field.name]
    return 1 if is_fixed else number
