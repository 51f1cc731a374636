"""The order in which Kafka's tools list what they keep in a java.util.HashMap.

They print such maps as they come: by slot of the table, inside of a slot as they were put in. The
table has a power of two of slots, and doubles when it is filled to more than three quarters.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from kctl.dump.java_order import string_hash

T = TypeVar("T")

DEFAULT_CAPACITY = 16

_string_hash = cache(string_hash)  # the names of settings come again with every topic


def hash_map_order(
    keys: Iterable[T], java_hash: Callable[[T], int], capacity: int = DEFAULT_CAPACITY
) -> list[T]:
    """The keys, put in one after the other, in the order of the table."""
    entered = list(dict.fromkeys(keys))
    slots = 1
    while slots < capacity or len(entered) > slots * 3 // 4:
        slots *= 2
    # sorted keeps the order of what is equal, and that is what Java does inside of a slot.
    return sorted(entered, key=lambda key: _slot(java_hash(key), slots))


def names_in_map_order(names: Iterable[str], capacity: int = DEFAULT_CAPACITY) -> list[str]:
    """Strings as the keys of a map."""
    return hash_map_order(names, _string_hash, capacity)


def _slot(value: int, slots: int) -> int:
    """The upper half of the bits is mixed into the lower, which choose the slot."""
    unsigned = value & 0xFFFFFFFF
    return (unsigned ^ unsigned >> 16) & (slots - 1)
