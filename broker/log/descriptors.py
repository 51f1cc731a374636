"""Opens files when descriptors are scarce: EMFILE and ENFILE are back-pressure, never a bad disk.

The log opens files when they are needed and can release most of its descriptors at any time. When
the system refuses another descriptor, three things happen in this order:

 1. The files of all logs are released (`reclaim`, set by the LogManager) and the open is repeated.
 2. If that is not enough and the file must be written (a checkpoint, a snapshot, an aborted
    transaction), one of a few descriptors reserved for this purpose is closed.
 3. Otherwise the OSError goes to the caller, which fails this one operation with a retriable
    error. The log stays online and the next attempt starts again with step 1.

The shortage is logged once a minute. Connections leave the log some descriptors
(`net.file_descriptors`).
"""

import errno
import logging
import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

_RESERVED: Final = 8
_ATTEMPTS: Final = 3
"""Another thread may take the descriptor that was just freed."""

_WARN_INTERVAL_S: Final = 60.0


def is_out_of_descriptors(error: OSError) -> bool:
    """Whether the process or the system has too many open files; the disk is not at fault."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


class Descriptors:
    """Opens the log's files.

    Field `reclaim`: releases files that are open but not in use. Called from any thread.
    Field `_reserve`: descriptors of /dev/null. Invariant: at most `_RESERVED` of them.
    """

    def __init__(self) -> None:
        self.reclaim: Callable[[], None] = lambda: None
        self._reserve: list[int] = []
        self._warned_at = -_WARN_INTERVAL_S
        self._is_reclaiming = threading.local()

    def fill_reserve(self) -> None:
        """Keep some descriptors for files that must be written."""
        try:
            while len(self._reserve) < _RESERVED:
                self._reserve.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return

    def empty_reserve(self) -> None:
        """Close the reserve."""
        while self._reserve:
            os.close(self._reserve.pop())

    def open(self, path: Path, flags: int, mode: int = 0o640, *, may_use_reserve: bool) -> int:
        """As os.open, with O_CLOEXEC; OSError EMFILE or ENFILE only if all three steps failed."""
        try:
            return os.open(path, flags | os.O_CLOEXEC, mode)
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise
            return self._open_in_shortage(path, flags | os.O_CLOEXEC, mode, may_use_reserve, error)

    def _open_in_shortage(
        self, path: Path, flags: int, mode: int, may_use_reserve: bool, error: OSError
    ) -> int:
        self.warn(error)
        for attempt in range(_ATTEMPTS):
            if not attempt:
                self.reclaim_all()
            elif may_use_reserve and self._reserve:
                os.close(self._reserve.pop())
            try:
                fd = os.open(path, flags, mode)
            except OSError as again:
                if not is_out_of_descriptors(again) or attempt == _ATTEMPTS - 1:
                    raise
            else:
                if not attempt:
                    self.fill_reserve()
                return fd
        raise error

    def reclaim_all(self) -> None:
        """Release the files of all logs; does nothing if this thread is already doing so."""
        if getattr(self._is_reclaiming, "now", False):
            return
        self._is_reclaiming.now = True
        try:
            self.reclaim()
        finally:
            self._is_reclaiming.now = False

    def warn(self, error: OSError) -> None:
        """Log the shortage, at most once a minute."""
        now = time.monotonic()
        if now - self._warned_at < _WARN_INTERVAL_S:
            return
        self._warned_at = now
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        logger.warning(
            "too many open files, releasing those of idle segments; raise the limit (ulimit -n, "
            "LimitNOFILE) soft_limit=%s hard_limit=%s: %s",
            soft,
            hard,
            error,
        )


DESCRIPTORS = Descriptors()
"""The limit is that of the process, so all log directories share one."""
