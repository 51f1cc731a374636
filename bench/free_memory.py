"""Touches a virtual machine's free memory before a measurement."""

import os
import tempfile
from pathlib import Path

_CHUNK_BYTES = 2**20
_LEFT_FREE_BYTES = 150 * 2**20
"""Slightly more than the kernel keeps free in any case."""


class FreeMemory:
    """Fills all free memory with page cache, which the kernel reclaims on demand.

    A virtual machine gets a page from its host on first touch and gives free pages back soon after.
    The next writer pays for that, several times the cost of the write itself: writing 400 MB took a
    broker 0.5 s or 2.5 s of system time, at random. A machine that has run for a while has no free
    memory, only cache, so this is also what operators see.
    """

    def __init__(self) -> None:
        self._hole = tempfile.TemporaryFile(prefix="kctl-bench-")  # noqa: SIM115  # lives as long as this object
        self._hole.truncate(2**40)  # reading a hole fills pages but uses no disk
        self._position = 0

    def touch(self) -> None:
        """Touch all free memory; cheap if called again soon."""
        buffer = bytearray(_CHUNK_BYTES)
        end = self._position + _free_bytes() - _LEFT_FREE_BYTES
        while self._position < end:
            self._position += os.preadv(self._hole.fileno(), [buffer], self._position)


def _free_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemFree":
            return int(value.split()[0]) * 1024
    raise RuntimeError("/proc/meminfo has no MemFree")
