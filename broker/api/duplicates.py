"""Requests that name the same thing many times: each one is described once.

A description can be thousands of times larger than its name in the request. Without this, the size
of a response would be the product of two numbers that a client chooses: how large a group, topic or
transaction is, and how often it is named. With it, a response is at most as large as the request
plus one description of everything there is.

Kafka does this for Metadata and Fetch, because it keeps their topics in a set or map; the others it
describes as often as they are named. No client does that: their results are maps by name.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import Slices
from broker.protocol.schema import Request

_Key = Callable[[Any], object]
_SLICE: Final = 1000


def _itself(entry: object) -> object:
    return entry


def _topic(entry: Any) -> object:
    return entry.topic_id, entry.name


def _config_resource(entry: Any) -> object:
    keys = entry.configuration_keys
    return entry.resource_type, entry.resource_name, None if keys is None else tuple(keys)


def _all_offsets(entry: Any) -> object:
    """A group whose topics are null: all of its offsets are fetched. Others are never equal."""
    return entry.group_id if entry.topics is None else id(entry)


_ENTRIES: Final[Mapping[int, tuple[str, _Key]]] = {
    ApiKey.METADATA: ("topics", _topic),
    ApiKey.DESCRIBE_CONFIGS: ("resources", _config_resource),
    ApiKey.DESCRIBE_GROUPS: ("groups", _itself),
    ApiKey.DESCRIBE_TRANSACTIONS: ("transactional_ids", _itself),
    ApiKey.OFFSET_FETCH: ("groups", _all_offsets),
}
"""By API: the array to make distinct, and what makes two of its entries equal."""


def remove_duplicates(request: Request[Any]) -> None:
    """Keep the first of equal entries, in order."""
    for _ in removing_duplicates(request):
        pass


def removing_duplicates(request: Request[Any]) -> Slices[None]:
    """The same in slices, for a request with very many entries."""
    if request.api_key == ApiKey.DESCRIBE_PRODUCERS:
        yield from _distinct_partitions(request)
    elif request.api_key in _ENTRIES:
        name, key = _ENTRIES[request.api_key]
        entries = getattr(request, name, None)
        if entries and len(entries) > 1:
            kept = yield from _distinct(entries, key)
            setattr(request, name, kept)


def _distinct(entries: list[Any], key: _Key) -> Slices[list[Any]]:
    """Takes the entries out of the list, so that they are not all freed at once."""
    seen: dict[object, Any] = {}
    entries.reverse()
    while entries:
        for _ in range(min(len(entries), _SLICE)):
            entry = entries.pop()
            seen.setdefault(key(entry), entry)
        yield
    return list(seen.values())


def _distinct_partitions(request: Any) -> Slices[None]:
    seen: dict[str, set[int]] = {}
    for topic in request.topics:
        known = seen.setdefault(topic.name, set())
        kept = yield from _distinct(topic.partition_indexes, _itself)
        topic.partition_indexes = [index for index in kept if index not in known]
        known.update(kept)
