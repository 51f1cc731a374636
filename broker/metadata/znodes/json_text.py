"""JSON as Kafka's znodes hold it.

Kafka hands Scala's and Java's hash maps to its JSON writer, so the order of keys is that of hash
tables. Where the keys are fixed the objects beside this module write them down in that order. Where
they are data (partitions, config keys, listeners) the functions here compute it: each is one of the
JVM's maps, reduced to the order in which it iterates over its keys.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from broker.java_strings import java_hash

Value = TypeVar("Value")

_MASK = 0xFFFFFFFF
_INITIAL_BUCKETS = 16
# A Scala map of up to four entries keeps insertion order.
_SMALL_MAP = 4
_TRIE_BITS = 5
_HASH_BITS = 32


class MalformedZnode(ValueError):
    """A node's data is not what Kafka stores there; the message names path and data."""

    def __init__(self, path: str, data: bytes | None, reason: object) -> None:
        super().__init__(f"{path}: {reason}, found {data!r}")
        self.path = path


@contextmanager
def reading(path: str, data: bytes | None) -> Iterator[None]:
    """Decode a node's data inside: a missing or unexpected field becomes a MalformedZnode."""
    try:
        yield
    except MalformedZnode:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f"{type(error).__name__} {error}".strip()
        raise MalformedZnode(path, data, f"expected what Kafka keeps there ({reason})") from error


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Without blanks, in UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode_json(path: str, data: bytes | None) -> dict[str, Any]:
    """The object that a node contains; MalformedZnode if it is not one."""
    try:
        value = json.loads(data or b"")
    except ValueError as error:
        raise MalformedZnode(path, data, f"expected JSON ({error})") from error
    if not isinstance(value, dict):
        raise MalformedZnode(path, data, "expected a JSON object")
    return value


def _spread(text: str) -> int:
    """How both libraries mix the upper half of a hash into the lower, which picks the bucket."""
    hashed = java_hash(text) & _MASK
    return hashed ^ hashed >> 16


def scala_mutable_map(entries: Mapping[str, Value]) -> dict[str, Value]:
    """In the order of scala.collection.mutable.HashMap: by bucket, then by hash."""
    buckets = _INITIAL_BUCKETS
    while len(entries) >= buckets * 3 // 4:
        buckets *= 2
    spread = {key: _signed(_spread(key)) for key in entries}
    keys = sorted(entries, key=lambda key: (spread[key] & buckets - 1, spread[key]))
    return {key: entries[key] for key in keys}


def scala_immutable_map(entries: Mapping[str, Value]) -> dict[str, Value]:
    """In the order of scala.collection.immutable.Map: insertion order, or that of a hash trie."""
    if len(entries) <= _SMALL_MAP:
        return dict(entries)
    return {key: entries[key] for key in _trie_order(entries, 0)}


def _trie_order(keys: Iterable[str], shift: int) -> list[str]:
    """One level of the trie: first the keys that are alone in their branch, then the others."""
    if shift >= _HASH_BITS:  # equal hashes: no deeper to go
        return list(keys)
    branches: dict[int, list[str]] = {}
    for key in keys:
        branches.setdefault(_improve(java_hash(key) & _MASK) >> shift & 31, []).append(key)
    ordered = [branches[branch] for branch in sorted(branches)]
    alone = [branch[0] for branch in ordered if len(branch) == 1]
    crowded = (branch for branch in ordered if len(branch) > 1)
    return alone + [key for branch in crowded for key in _trie_order(branch, shift + _TRIE_BITS)]


def _improve(hashed: int) -> int:
    """Scala's mixing for its tries."""
    hashed = (hashed + ~(hashed << 9)) & _MASK
    hashed ^= hashed >> 14
    hashed = (hashed + (hashed << 4)) & _MASK
    return hashed ^ hashed >> 10


def java_properties(entries: Mapping[str, Value]) -> dict[str, Value]:
    """In the order of java.util.Properties, filled in the order of `entries`.

    It is a ConcurrentHashMap: keys of a bucket are in insertion order until the table grows and the
    bucket is split. Then the keys before the last run with the same new bucket are in reverse
    order.
    """
    table: list[list[str]] = [[] for _ in range(_INITIAL_BUCKETS)]
    for count, key in enumerate(entries, start=1):
        table[_spread(key) & len(table) - 1].append(key)
        if count >= len(table) * 3 // 4:
            table = _grown(table)
    return {key: entries[key] for bucket in table for key in bucket}


def _grown(table: list[list[str]]) -> list[list[str]]:
    size = len(table)
    grown: list[list[str]] = [[] for _ in range(2 * size)]
    for bucket in table:
        targets = [_spread(key) & 2 * size - 1 for key in bucket]
        last_run = len(bucket)
        while last_run and targets[last_run - 1] == targets[-1]:
            last_run -= 1
        for key, target in zip(bucket[last_run:], targets[last_run:], strict=True):
            grown[target].append(key)
        for key, target in zip(bucket[:last_run], targets[:last_run], strict=True):
            grown[target].insert(0, key)
    return grown


def _signed(hashed: int) -> int:
    return hashed - (1 << 32) if hashed >> 31 else hashed
