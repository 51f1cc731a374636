"""A broker whose wall clock can be set while it runs.

`python -m tests.chaos.shifted_clock FILE …` runs the broker with the remaining arguments. FILE
holds the milliseconds by which its clock is wrong, as eight bytes; it is mapped into memory, so
that a change takes effect at once. Timeouts use the monotonic clock, which cannot be set.
"""

import mmap
import struct
import sys
from pathlib import Path

from broker.__main__ import main
from broker.clock import SystemClock

_SHIFT = struct.Struct("=q")


def write_shift(file: Path, milliseconds: int) -> None:
    """Set the clock of the broker that uses this file; in place, because it is mapped."""
    mode = "r+b" if file.exists() else "wb"
    with file.open(mode) as opened:
        opened.write(_SHIFT.pack(milliseconds))


def _install(file: Path) -> None:
    with file.open("rb") as opened:
        shift = mmap.mmap(opened.fileno(), _SHIFT.size, prot=mmap.PROT_READ)
    now_ms = SystemClock.now_ms

    def shifted(self: SystemClock) -> int:
        return int(now_ms(self) + _SHIFT.unpack_from(shift)[0])

    SystemClock.now_ms = shifted  # type: ignore[method-assign]


if __name__ == "__main__":
    _install(Path(sys.argv.pop(1)))
    main()
