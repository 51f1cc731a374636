"""Reading of small text files, whatever their path leads to."""

import errno
import os
from pathlib import Path

MAX_BYTES = 64 << 20
"""Plans, offsets and properties are far smaller; a device such as /dev/zero never ends."""


def read_small_text(path: Path) -> str:
    """The text of a UTF-8 file; OSError if it cannot be read or is too large."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data.decode("utf-8")
