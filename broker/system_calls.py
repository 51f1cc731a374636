"""System calls that only some systems have, each with a fallback of plain POSIX.

Linux has all of them. macOS lacks posix_fallocate, fdatasync and syncfs, and its older versions
pwritev and preadv. Names of `os` that may be missing are used in this module only; `broker.net`
handles those of `select` and `socket`. `tests/portable` runs the broker with all of these names
removed.
"""

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Final

Buffer = bytes | bytearray | memoryview

_COPIED_BYTES: Final = 256 * 1024
"""How much is copied at once where the kernel cannot copy."""

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_SYNCFS: Final = getattr(_LIBC, "syncfs", None)


def _pwritev(fd: int, buffers: Sequence[Buffer], position: int) -> int:
    return os.pwrite(fd, b"".join(buffers), position)


def _preadv(fd: int, buffers: Sequence[bytearray | memoryview], position: int) -> int:
    (room,) = buffers
    data = os.pread(fd, len(room), position)
    room[: len(data)] = data
    return len(data)


def _sendfile(socket_fd: int, fd: int, position: int, length: int) -> int:
    return os.write(socket_fd, os.pread(fd, min(length, _COPIED_BYTES), position))


def _posix_fallocate(fd: int, position: int, length: int) -> None:
    """Write the bytes that are there again, and zeros after the end of the file."""
    end = position + length
    while position < end:
        count = min(end - position, _COPIED_BYTES)
        data = os.pread(fd, count, position)
        position += os.pwrite(fd, data.ljust(count, b"\0"), position)


pwritev: Final[Callable[[int, Sequence[Buffer], int], int]] = getattr(os, "pwritev", _pwritev)
"""As os.pwritev: write buffers at a position, return how many bytes were written."""

preadv: Final[Callable[[int, Sequence[bytearray | memoryview], int], int]] = getattr(
    os, "preadv", _preadv
)
"""As os.preadv; takes one buffer."""

sendfile: Final[Callable[[int, int, int, int], int]] = getattr(os, "sendfile", _sendfile)
"""As os.sendfile: send from a position of a file, return how many bytes were sent, 0 at its end."""

fdatasync: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)
"""As os.fdatasync: flush the bytes and the size of an open file to the medium."""

posix_fallocate: Final[Callable[[int, int, int], None]] = getattr(
    os, "posix_fallocate", _posix_fallocate
)
"""As os.posix_fallocate: after it, writing to this part of the file cannot fail with ENOSPC.

The fallback needs a part of the file to which no other thread or process writes meanwhile."""


def sync_file_system(fd: int) -> None:
    """Flush the file system that holds an open file to the medium; else all file systems."""
    if _SYNCFS is None:
        os.sync()
    elif _SYNCFS(fd):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
