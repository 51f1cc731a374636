"""The file system of the log: all changes go through `FileSystem`, open files are `OpenFile`s.

Tests replace `FileSystem` with one that fails on purpose: the nth write fails, the disk is full, a
write is cut short, a flush fails. Reads are not replaced; they use the descriptor directly.

Every failure raises the `OSError` of the system with the file name in it, because an error number
alone does not tell an operator which file is affected.
"""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from broker.log.descriptors import DESCRIPTORS
from broker.system_calls import Buffer as Buffer
from broker.system_calls import fdatasync, posix_fallocate, pwritev, sync_file_system


class OpenFile:
    """A descriptor that is closed when its last reference is dropped.

    A fetch response may still be sending from a segment that retention has deleted meanwhile; the
    bytes stay readable until its `FileSlice` is gone.
    """

    __slots__ = ("__weakref__", "fd", "path")

    def __init__(self, fd: int, path: Path) -> None:
        self.fd = fd
        self.path = path

    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self.fd).st_size

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        data = os.pread(self.fd, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        missing = length - len(data)
        while missing and (more := os.pread(self.fd, missing, position + length - missing)):
            parts.append(more)
            missing -= len(more)
        return b"".join(parts)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # no caller could handle it
            os.close(self.fd)


class FileSlice:
    """A range of a file that has not been read: the records of a fetch response.

    `fileno()`, `position` and `len()` are the arguments of `os.sendfile`; `read()` is for callers
    that need the bytes (TLS, conversion to old formats).
    """

    __slots__ = ("_length", "file", "position")

    def __init__(self, file: OpenFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self._length = length

    def __len__(self) -> int:
        return self._length

    def fileno(self) -> int:
        """The descriptor; valid as long as this slice lives."""
        return self.file.fd

    def read(self) -> bytes:
        """All bytes of the slice."""
        return self.file.read(self.position, self._length)


def _name(error: OSError, path: Path) -> NoReturn:
    raise OSError(error.errno, error.strerror or str(error), str(path)) from error


class _Deferring(threading.local):
    """How many `leaving_out_syncs` blocks this thread is in."""

    depth = 0


class FileSystem:
    """All changes that the log makes to a disk. Each completes or raises a named OSError."""

    _deferring = _Deferring()

    def open_file(self, path: Path, *, create: bool = False) -> OpenFile:
        """Open for reading and writing; a missing file is an error unless `create`."""
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        return OpenFile(DESCRIPTORS.open(path, flags, may_use_reserve=create), path)

    def create_file(self, path: Path) -> OpenFile:
        """Create an empty file. An existing one is unlinked; open descriptors keep it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        try:
            fd = DESCRIPTORS.open(path, flags, may_use_reserve=True)
        except FileExistsError:
            self.remove(path)
            fd = DESCRIPTORS.open(path, flags, may_use_reserve=True)
        return OpenFile(fd, path)

    def write(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of `buffers`, one after the other, from `position` on.

        After an error any part of them may be in the file; the caller must cut it off.
        """
        try:
            written = pwritev(file.fd, buffers, position)
            if written != sum(map(len, buffers)):
                self._write_rest(file, b"".join(buffers)[written:], position + written)
        except OSError as error:
            _name(error, file.path)

    @staticmethod
    def _write_rest(file: OpenFile, rest: bytes, position: int) -> None:
        """Continue after a short write until everything is written or the system raises."""
        while rest:
            written = os.pwrite(file.fd, rest, position)
            rest, position = rest[written:], position + written

    def truncate(self, file: OpenFile, size: int) -> None:
        """Truncate the file, or extend it with a hole."""
        try:
            os.ftruncate(file.fd, size)
        except OSError as error:
            _name(error, file.path)

    def allocate(self, file: OpenFile, position: int, length: int) -> None:
        """Allocate the blocks of this part of the file: writing to it cannot fail with ENOSPC."""
        try:
            posix_fallocate(file.fd, position, length)
        except OSError as error:
            _name(error, file.path)

    @contextlib.contextmanager
    def leaving_out_syncs(self) -> Iterator[None]:
        """Skip every sync of this thread inside the block; the caller must call `sync_file_system`.

        For work that creates thousands of small files: one flush instead of thousands. None of it
        may be acknowledged before that flush.
        """
        self._deferring.depth += 1
        try:
            yield
        finally:
            self._deferring.depth -= 1

    def sync_file_system(self, path: Path) -> None:
        """Flush the file system that holds `path` to the medium (syncfs)."""
        fd = DESCRIPTORS.open(path, os.O_RDONLY | os.O_DIRECTORY, may_use_reserve=True)
        try:
            sync_file_system(fd)
        except OSError as error:
            _name(error, path)
        finally:
            os.close(fd)

    def sync(self, file: OpenFile) -> None:
        """Flush the file to the medium (fsync)."""
        if self._deferring.depth:
            return
        try:
            os.fsync(file.fd)
        except OSError as error:
            _name(error, file.path)

    def sync_data(self, file: OpenFile) -> None:
        """Flush the bytes of the file and its size, but not its times (fdatasync)."""
        try:
            fdatasync(file.fd)
        except OSError as error:
            _name(error, file.path)

    def sync_directory(self, path: Path) -> None:
        """Flush the directory's entries to the medium; a missing directory is not an error."""
        if self._deferring.depth:
            return
        try:
            fd = DESCRIPTORS.open(path, os.O_RDONLY | os.O_DIRECTORY, may_use_reserve=True)
        except FileNotFoundError:
            return
        try:
            os.fsync(fd)
        except OSError as error:
            _name(error, path)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically, replacing an existing target."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Delete the file if it is there."""
        path.unlink(missing_ok=True)

    def make_directory(self, path: Path) -> None:
        """Create the directory and its parents if they are missing; its group may read it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(0o750, exist_ok=True)

    def remove_directory(self, path: Path) -> None:
        """Delete the directory and everything in it."""
        shutil.rmtree(path)

    def write_file(self, path: Path, data: bytes, *, sync: bool) -> None:
        """Create or overwrite a whole file; a crash may leave a part of it."""
        file = self.create_file(path)
        self.write(file, [data], 0)
        if sync:
            self.sync(file)

    def replace_file(self, path: Path, data: bytes) -> None:
        """Replace a file atomically: after a crash it holds the old bytes or the new ones."""
        temporary = path.with_name(path.name + ".tmp")
        self.write_file(temporary, data, sync=True)
        self.rename(temporary, path)
        self.sync_directory(path.parent)


DISK = FileSystem()
