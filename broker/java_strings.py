"""Strings as Java counts and hashes them: by UTF-16 units.

Which partition holds a group or a transactional id, and how long metadata may be, is defined by
Java's String.
"""

from functools import lru_cache
from struct import unpack


def java_length(text: str) -> int:
    """String.length()."""
    return len(text) if text.isascii() else len(_utf16(text)) // 2


@lru_cache(maxsize=4096)
def java_hash(text: str) -> int:
    """String.hashCode(); remembered, as every request of a group asks for it."""
    data = _utf16(text)
    value = 0
    for unit in unpack(f"<{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def partition_for(key: str, num_partitions: int) -> int:
    """The partition of an internal topic that keeps a group or transactional id.

    Its leader is the coordinator.
    """
    value = java_hash(key)
    # Java's abs of its smallest int is negative, so Kafka takes 0 for that one.
    return (0 if value == -(2**31) else abs(value)) % num_partitions


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")
