"""Decoded records: one by one, or as columns over the bytes of a batch."""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from broker.records.layout import MAX_INT32

Header = tuple[str, bytes | None]
Headers = tuple[Header, ...]

# A record as a plain tuple, in the order of `Record`: a sixth cheaper to make, for tight loops.
RecordTuple = tuple[int, int, bytes | None, bytes | None, Headers]


class Record(NamedTuple):
    """One record; a null key or value is None, which is not the same as an empty one."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordColumns:
    """The records of one batch as columns, without an object per record.

    `data` holds the uncompressed records; keys and values are spans of it, given by start and
    length. A length of -1 is null. `header_starts` is where the first header of a record lies,
    meaningful where `header_counts` is not 0.
    Invariant: all columns have the same length, and no span reaches beyond `data`.
    """

    __slots__ = (
        "data",
        "header_counts",
        "header_starts",
        "key_lengths",
        "key_starts",
        "offsets",
        "timestamps",
        "value_lengths",
        "value_starts",
    )

    def __init__(self, data: bytes, count: int) -> None:
        """Columns of `count` zeros over `data`, for a decoder to fill."""
        if len(data) > MAX_INT32:  # the spans are int32, as in Kafka a batch cannot be larger
            raise OverflowError(f"{len(data)} bytes of records are more than one batch can hold")
        longs, ints = array("q", bytes(8)), array("i", bytes(4))
        self.data = data
        self.offsets = longs * count
        self.timestamps = longs * count
        self.key_starts = ints * count
        self.key_lengths = ints * count
        self.value_starts = ints * count
        self.value_lengths = ints * count
        self.header_starts = ints * count
        self.header_counts = ints * count

    def __len__(self) -> int:
        return len(self.offsets)

    def keys(self) -> list[bytes | None]:
        """The keys, copied out of `data`."""
        return _spans(self.data, zip(self.key_starts, self.key_lengths, strict=True))

    def values(self) -> list[bytes | None]:
        """The values, copied out of `data`."""
        return _spans(self.data, zip(self.value_starts, self.value_lengths, strict=True))


def _spans(data: bytes, spans: Iterable[tuple[int, int]]) -> list[bytes | None]:
    return [None if length < 0 else data[start : start + length] for start, length in spans]
