"""The process's limit of open files, and how much of it connections may use.

The soft limit is raised to the hard one at start, as the JVM does for Kafka. Connections leave the
last few descriptors to the log, which needs them to write checkpoints and to roll segments.
"""

import contextlib
import errno
import os
import resource
from typing import Final

OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of accept(2) that pass when the process or the machine closes files or frees memory."""

_MAX_RESERVED: Final = 32
_RESERVED_SHARE: Final = 16
"""Reserved is one in this many descriptors, at most `_MAX_RESERVED`."""

_MACOS_OPEN_MAX: Final = 10_240


def raise_soft_limit() -> tuple[int, int]:
    """Raise RLIMIT_NOFILE's soft limit to the hard limit; return the soft limit before and now.

    macOS reports a hard limit that it does not grant ("unlimited"). There the soft limit becomes
    OPEN_MAX, as the JVM sets it, unless it is higher.
    """
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before == hard:
        return before, before
    for wanted in (hard, max(before, min(hard, _MACOS_OPEN_MAX))):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return before, wanted
    return before, before


def connection_limit() -> int:
    """The lowest descriptor number that a connection must not have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft - min(soft // _RESERVED_SHARE, _MAX_RESERVED)


def has_descriptors_for_connections(any_open: int) -> bool:
    """Whether one more connection leaves the reserve untouched; `any_open` is any open descriptor.

    The kernel always hands out the lowest free number, so the number of a new descriptor shows how
    many are in use without counting them.
    """
    try:
        lowest_free = os.dup(any_open)
    except OSError:
        return False
    os.close(lowest_free)
    return lowest_free < connection_limit()
