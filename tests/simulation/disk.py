"""The disk of a simulated broker: real files, with faults.

- full: every write fails with ENOSPC;
- slow: the process stands still after each write, since brokers write on their event loop;
- power loss: what was written and not synced is undone, newest first.

After its process has died a disk refuses all changes: nothing of a dead broker may touch the files
of its successor.
"""

import asyncio
import contextvars
import errno
import os
import random
from collections.abc import Sequence
from pathlib import Path

from broker.log.files import Buffer, FileSystem, OpenFile
from tests.simulation.loop import Process

_NO_PROCESS = contextvars.Context()


class SimulatedDisk(FileSystem):
    """One broker's disk, for one life of its process."""

    def __init__(self, process: Process, rng: random.Random, *, keep_undo: bool) -> None:
        self._process = process
        self._rng = rng
        self._keep_undo = keep_undo
        self._undo: dict[Path, list[tuple[int, bytes, int]]] = {}
        """Unsynced writes by file: position, the bytes that were there, the size before."""
        self.is_full = False
        self.max_stall_s = 0.0

    def write(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> None:
        """See FileSystem."""
        self._check(file.path)
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.path))
        self._remember(file, position, sum(map(len, buffers)))
        super().write(file, buffers, position)
        self._maybe_stall()

    def truncate(self, file: OpenFile, size: int) -> None:
        """See FileSystem."""
        self._check(file.path)
        before = file.size()
        self._remember(file, min(size, before), max(before - size, 0))
        super().truncate(file, size)

    def sync(self, file: OpenFile) -> None:
        """See FileSystem; nothing is really synced, the machine does not lose power."""
        self._check(file.path)
        self._undo.pop(file.path, None)
        self._maybe_stall()

    def sync_data(self, file: OpenFile) -> None:
        """See FileSystem."""
        self.sync(file)

    def sync_directory(self, path: Path) -> None:
        """See FileSystem."""
        self._check(path)

    def sync_file_system(self, path: Path) -> None:
        """See FileSystem."""
        self._check(path)
        self._undo.clear()

    def rename(self, source: Path, target: Path) -> None:
        """See FileSystem."""
        self._check(source)
        self._undo.pop(target, None)
        if (undo := self._undo.pop(source, None)) is not None:
            self._undo[target] = undo
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        """See FileSystem."""
        self._check(path)
        self._undo.pop(path, None)
        super().remove(path)

    def remove_directory(self, path: Path) -> None:
        """See FileSystem."""
        self._check(path)
        for written in [known for known in self._undo if known.is_relative_to(path)]:
            del self._undo[written]
        super().remove_directory(path)

    def lose_power(self) -> None:
        """Undo what was not synced; call it after the process has died."""
        for path, writes in self._undo.items():
            if not path.exists():
                continue
            with path.open("r+b") as file:
                for position, old, size in reversed(writes):
                    file.seek(position)
                    file.write(old)
                    file.truncate(size)
        self._undo.clear()

    def _remember(self, file: OpenFile, position: int, length: int) -> None:
        if self._keep_undo:
            old = file.read(position, length)
            self._undo.setdefault(file.path, []).append((position, old, file.size()))

    def _check(self, path: Path) -> None:
        if not self._process.is_alive:
            raise OSError(errno.EIO, "the process is dead", str(path))

    def _maybe_stall(self) -> None:
        if self.max_stall_s:
            self._process.pause()
            stall_s = self._rng.uniform(0, self.max_stall_s)
            loop = asyncio.get_running_loop()
            loop.call_later(stall_s, self._process.resume, context=_NO_PROCESS)
