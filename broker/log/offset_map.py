"""Key → latest offset in a fixed amount of memory, for the dirty section of a log being cleaned.

A table of 24 bytes per slot: the md5 of the key and its offset. Two keys with the same digest would
be one key to the cleaner, so the digest is not shortened. Collisions of slots are resolved by
probing the other bytes of the digest, then the slots that follow.
"""

import hashlib
from struct import Struct
from typing import Final

_HASH_SIZE: Final = 16
_OFFSET: Final = Struct(">q")
BYTES_PER_ENTRY: Final = _HASH_SIZE + _OFFSET.size
_EMPTY: Final = bytes(_HASH_SIZE)
_PROBES_IN_HASH: Final = _HASH_SIZE - 4


class OffsetMap:
    """Holds at most `slots` keys and never grows.

    Field `latest_offset`: the last offset that was read, with or without a key.
    Invariant: a key's offset is the largest that was put for it, because offsets are put in order.
    """

    __slots__ = ("_table", "latest_offset", "size", "slots")

    def __init__(self, memory_bytes: int) -> None:
        self.slots = memory_bytes // BYTES_PER_ENTRY
        if self.slots < 1:
            raise ValueError(f"{memory_bytes} bytes are too few for one entry")
        self._table = bytearray(self.slots * BYTES_PER_ENTRY)
        self.size = 0
        self.latest_offset = -1

    @property
    def utilization(self) -> float:
        """How full the map is, from 0 to 1."""
        return self.size / self.slots

    def put(self, key: bytes, offset: int) -> None:
        """Add a record; ValueError for a new key when the map is full."""
        digest = hashlib.md5(key, usedforsecurity=False).digest()
        position, is_new = self._find(digest)
        if is_new:
            if self.size >= self.slots:
                raise ValueError(f"the offset map is full with {self.size} keys")
            self._table[position : position + _HASH_SIZE] = digest
            self.size += 1
        _OFFSET.pack_into(self._table, position + _HASH_SIZE, offset)
        self.latest_offset = offset

    def get(self, key: bytes) -> int:
        """The latest offset of the key; -1 if it was never put."""
        digest = hashlib.md5(key, usedforsecurity=False).digest()
        position, is_new = self._find(digest)
        if is_new:
            return -1
        offset: int = _OFFSET.unpack_from(self._table, position + _HASH_SIZE)[0]
        return offset

    def _find(self, digest: bytes) -> tuple[int, bool]:
        """Where the digest is, or where it belongs; in a full map without it, its first slot."""
        table, slots = self._table, self.slots
        for attempt in range(slots + _PROBES_IN_HASH):
            start = min(attempt, _PROBES_IN_HASH)
            probe = int.from_bytes(digest[start : start + 4], "big")
            position = (probe + max(0, attempt - _PROBES_IN_HASH)) % slots * BYTES_PER_ENTRY
            found = table[position : position + _HASH_SIZE]
            if found == digest:
                return position, False
            if found == _EMPTY and not any(table[position + _HASH_SIZE : position + 24]):
                return position, True
        return 0, True
