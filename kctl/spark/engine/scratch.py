"""A directory for the files of one run of Spark: its log, and our code for its workers."""

import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

PREFIX: Final = "kctl-spark-"
_LOCK: Final = "lock"
_SETTLED_S: Final = 60
"""A younger directory may be one whose owner is about to lock it."""


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory for the block. What a killed process has left is removed by the next run."""
    _remove_abandoned()
    with TemporaryDirectory(prefix=PREFIX) as name:
        path = Path(name)
        with (path / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield path


def _remove_abandoned() -> None:
    """Remove the directories whose lock no process holds."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # No lock, locked, of another user, or removed meanwhile: left alone.
        with suppress(OSError), (path / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - (path / _LOCK).stat().st_mtime > _SETTLED_S:
                shutil.rmtree(path)
