"""Length and hash code of Java strings, which count UTF-16 code units, and Java's numbers.

Kafka uses them to choose the partition of an internal topic that stores a group or transactional
id, and to limit the length of commit metadata.
"""

from decimal import Decimal
from functools import lru_cache
from struct import unpack


def java_length(text: str) -> int:
    """String.length()."""
    return len(text) if text.isascii() else len(_utf16(text)) // 2


def java_long(value: int) -> int:
    """A sum or difference of longs, which wraps around in Java."""
    return (value + 2**63) % 2**64 - 2**63


@lru_cache(maxsize=4096)
def java_hash(text: str) -> int:
    """String.hashCode(); cached, because every request of a group needs it."""
    data = _utf16(text)
    value = 0
    for unit in unpack(f"<{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def partition_for(key: str, num_partitions: int) -> int:
    """The partition of an internal topic for a group or transactional id.

    The leader of that partition is the coordinator.
    """
    value = java_hash(key)
    # Math.abs(Integer.MIN_VALUE) is negative in Java; Kafka's Utils.abs uses 0 instead.
    return (0 if value == -(2**31) else abs(value)) % num_partitions


def java_double(value: float) -> str:
    """Double.toString: `1000.0`, `1.0E7`, `1.0E-4`, with as few digits as identify the value."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value).replace("nan", "NaN").replace("inf", "Infinity")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, exponent = format(Decimal(repr(value)).normalize(), "E").split("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")
