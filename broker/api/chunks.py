"""Requests with very many entries as several requests with few entries each.

Most APIs process entries (partitions, groups, keys) independently of each other. A large request of
such an API is cut into chunks, each chunk is handled like a request of its own, and the responses
are joined: the handler needs no code for it, and other clients are served between two chunks.

What differs from handling it at once: an entry that occurs in two chunks is processed twice, where
some handlers would process it once or refuse both. No client sends one partition twice in a request
for thousands.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from broker.protocol.api_keys import ApiKey
from broker.protocol.schema import Request, Response, Struct

StructT = TypeVar("StructT", bound=Struct)

MANY: Final = 500
"""Up to this number of entries a request is handled at once."""

_CHUNK: Final = 100
"""Entries that are handled at once if there are more: some milliseconds of work."""


class Path(NamedTuple):
    """Where a request has its entries, and a response their results.

    `inner` is an array in the elements of `outer`: the partitions of topics. Without it, the
    elements of `outer` are the entries themselves.
    """

    outer: str
    inner: str | None
    results: str
    inner_results: str | None = None
    chunk: int = _CHUNK


_TOPICS: Final = Path("topics", "partitions", "topics", "partitions")

PATHS: Final[Mapping[int, tuple[Path, ...]]] = {
    # With acks=all each chunk waits for the ISR, so there must be few of them.
    ApiKey.PRODUCE: (
        Path("topic_data", "partition_data", "responses", "partition_responses", MANY),
    ),
    ApiKey.LIST_OFFSETS: (_TOPICS,),
    ApiKey.OFFSET_FETCH: (
        Path("topics", "partition_indexes", "topics", "partitions"),
        Path("groups", None, "groups"),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_TOPICS,),
    ApiKey.DELETE_RECORDS: (_TOPICS,),
    ApiKey.DESCRIBE_GROUPS: (Path("groups", None, "groups"),),
    ApiKey.DELETE_GROUPS: (Path("groups_names", None, "results"),),
    ApiKey.DESCRIBE_PRODUCERS: (Path("topics", "partition_indexes", "topics", "partitions"),),
    ApiKey.DESCRIBE_TRANSACTIONS: (Path("transactional_ids", None, "transaction_states"),),
    ApiKey.LEAVE_GROUP: (Path("members", None, "members"),),
    ApiKey.CREATE_ACLS: (Path("creations", None, "results"),),
    ApiKey.DELETE_ACLS: (Path("filters", None, "filter_results"),),
}
"""The APIs whose entries are independent of each other. A request has entries at one of the
paths of its API: which one depends on the version."""


def large_path(request: Request[Any]) -> Path | None:
    """The path of a request that has to be cut; None if it is handled at once."""
    for path in PATHS.get(request.api_key, ()):
        entries = getattr(request, path.outer, None)
        if entries and _is_large(entries, path.inner):
            return path
    return None


def _is_large(entries: list[Any], inner: str | None) -> bool:
    if inner is None or len(entries) > MANY:
        return len(entries) > MANY
    return sum(len(getattr(entry, inner) or ()) for entry in entries) > MANY


def cut(request: Request[Any], path: Path) -> Iterator[Request[Any]]:
    """The request in chunks. Takes the entries out of the request, so that they can be freed."""
    entries: list[Any] = getattr(request, path.outer)
    setattr(request, path.outer, [])
    for taken in _take_all(entries, path.inner, path.chunk):
        chunk = _copy(request)
        setattr(chunk, path.outer, taken)
        yield chunk


def _take_all(entries: list[Any], inner: str | None, count: int) -> Iterator[list[Any]]:
    """Lists of up to `count` entries; `entries` is empty in the end."""
    if inner is None:
        yield from _take_from(entries, count)
        return
    taken: list[Any] = []
    room = count
    entries.reverse()
    while entries:
        entry = entries.pop()
        nested: list[Any] = getattr(entry, inner) or []
        if len(nested) <= room:
            taken.append(entry)
            room -= max(len(nested), 1)
        else:
            for some in _take_from(nested, count):
                part = _copy(entry)
                setattr(part, inner, some)
                yield [*taken, part]
                taken = []
            room = count
        if room <= 0:
            yield taken
            taken, room = [], count
    if taken:
        yield taken


def _take_from(entries: list[Any], count: int) -> Iterator[list[Any]]:
    """Lists of `count` entries, from the first to the last; `entries` is empty in the end."""
    entries.reverse()  # they are removed from the end, which is cheap
    while entries:
        taken = entries[: -count - 1 : -1]
        del entries[-count:]
        yield taken


def _copy(struct: StructT) -> StructT:
    """A shallow copy. Fields that the version lacks are attributes of the class, and read-only."""
    copied = object.__new__(type(struct))
    for name in (*(field.name for field in struct.fields), "unknown_tags"):
        with suppress(AttributeError):
            setattr(copied, name, getattr(struct, name))
    return copied


def join(whole: Response, part: Response, path: Path) -> None:
    """Add the results of a later chunk to those of the chunks before it."""
    results: list[Any] = getattr(whole, path.results)
    added: list[Any] = getattr(part, path.results)
    if path.inner_results and results and added and _is_same(results[-1], added[0]):
        getattr(results[-1], path.inner_results).extend(getattr(added[0], path.inner_results))
        added = added[1:]
    results.extend(added)


def _is_same(one: Struct, other: Struct) -> bool:
    """Whether two results are of the same topic: its name, or its id, is their first field."""
    name = one.fields[0].name
    return bool(getattr(one, name) == getattr(other, name))
