"""Free memory of a virtual machine, touched before a measurement."""

import os
import tempfile
from pathlib import Path

_CHUNK_BYTES = 2**20
_LEFT_FREE_BYTES = 150 * 2**20
"""Hardly more than a kernel keeps free in any case."""


class FreeMemory:
    """Takes all free pages into the page cache, from where the kernel hands them out again.

    A virtual machine gets a page from its host when it is first touched, and gives free ones back
    soon after. That costs whoever writes next several times what the writing costs: 400 MB took a
    broker 0.5 s of system time, or 2.5 s, as chance would have it. A machine that has run for a
    while has no free memory, only cache, so this is also what operators see.
    """

    def __init__(self) -> None:
        self._hole = tempfile.TemporaryFile(prefix="kctl-bench-")  # noqa: SIM115  # for our life
        self._hole.truncate(2**40)  # reading a hole fills pages, and no disk
        self._position = 0

    def touch(self) -> None:
        """Do it now; little to do if it was done a moment ago."""
        buffer = bytearray(_CHUNK_BYTES)
        end = self._position + _free_bytes() - _LEFT_FREE_BYTES
        while self._position < end:
            self._position += os.preadv(self._hole.fileno(), [buffer], self._position)


def _free_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemFree":
            return int(value.split()[0]) * 1024
    raise RuntimeError("/proc/meminfo does not tell MemFree")
