"""Estimates the number of distinct keys in bounded memory (k minimum values).

Small numbers are counted exactly. Beyond that only the k smallest hashes are kept; their density
gives an estimate with an error of about 1/√k.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

KEPT: Final = 4096
_HASH_BYTES: Final = 8
_ALL_HASHES: Final = 2 ** (8 * _HASH_BYTES)


class DistinctCounter:
    """Counts distinct byte strings. *Invariant*: at most 2 * KEPT hashes are held."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._limit = _ALL_HASHES

    @property
    def is_exact(self) -> bool:
        """Whether `count` is exact."""
        return self._limit == _ALL_HASHES

    @property
    def count(self) -> int:
        """The number of distinct byte strings added."""
        if self.is_exact:
            return len(self._hashes)
        return round((KEPT - 1) * _ALL_HASHES / max(sorted(self._hashes)[:KEPT]))

    def add(self, keys: Iterable[bytes]) -> None:
        """Add keys."""
        limit = self._limit
        hashes = (
            int.from_bytes(blake2b(key, digest_size=_HASH_BYTES).digest(), "big") for key in keys
        )
        self._hashes.update(value for value in hashes if value < limit)
        if len(self._hashes) > 2 * KEPT:
            kept = sorted(self._hashes)[:KEPT]
            self._hashes, self._limit = set(kept), kept[-1] + 1
