"""The iteration order of java.util.HashMap, in which Kafka's tools print their maps.

It is the order of the buckets, and insertion order within a bucket. The number of buckets is a
power of two, and doubles when the table is more than three quarters full.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from kctl.views.kafka_text.java_order import string_hash

T = TypeVar("T")

DEFAULT_CAPACITY = 16

_string_hash = cache(string_hash)  # config names are repeated for every topic


def hash_map_order(
    keys: Iterable[T], java_hash: Callable[[T], int], capacity: int = DEFAULT_CAPACITY
) -> list[T]:
    """The keys, inserted one after the other, in the order of the table."""
    entered = list(dict.fromkeys(keys))
    slots = 1
    while slots < capacity or len(entered) > slots * 3 // 4:
        slots *= 2
    # sorted() is stable, which gives Java's insertion order within a bucket.
    return sorted(entered, key=lambda key: _slot(java_hash(key), slots))


def names_in_map_order(names: Iterable[str], capacity: int = DEFAULT_CAPACITY) -> list[str]:
    """Strings as the keys of a map."""
    return hash_map_order(names, _string_hash, capacity)


def _slot(value: int, slots: int) -> int:
    """Java's hash spreading: the upper half of the bits is mixed into the lower."""
    unsigned = value & 0xFFFFFFFF
    return (unsigned ^ unsigned >> 16) & (slots - 1)
