"""The iteration order of Scala's hash sets and maps, in which Kafka's tools print them.

It is the order of the buckets, and the order of hashes within a bucket. The table starts with 16
buckets; it doubles when an element would fill it to three quarters, and grows ahead for elements
that are added together.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from broker.model import TopicPartition

T = TypeVar("T")

_FIRST_SLOTS = 16
_LOAD_FACTOR = 0.75


def table_order(groups: Iterable[Sequence[T]], java_hash: Callable[[T], int]) -> list[T]:
    """All elements, added group after group, in the order of the table."""
    hashes: dict[T, int] = {}
    slots = _FIRST_SLOTS
    for group in groups:
        while slots < int((len(group) + 1) / _LOAD_FACTOR):
            slots *= 2
        for element in group:
            if len(hashes) + 1 >= int(slots * _LOAD_FACTOR):
                slots *= 2
            hashes[element] = _spread(java_hash(element))
    return sorted(hashes, key=lambda element: (hashes[element] & (slots - 1), hashes[element]))


def string_hash(text: str) -> int:
    """Java's hash of a string, over its UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = value * 31 + int.from_bytes(units[index : index + 2], "big")
    return _int32(value)


def partition_hash(partition: TopicPartition) -> int:
    """Java's hash of a TopicPartition."""
    return _int32(31 * (31 + partition.partition) + string_hash(partition.topic))


def _spread(value: int) -> int:
    """Java's hash spreading: the upper half of the bits is mixed into the lower."""
    unsigned = value & 0xFFFFFFFF
    return _int32(unsigned ^ unsigned >> 16)


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
