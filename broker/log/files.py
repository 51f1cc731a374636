"""The disk as the log sees it: every change goes through `FileSystem`, every file is an `OpenFile`.

One small class, so that tests can hand in one that breaks on purpose: the nth write fails, the disk
is full, a write is cut short, a flush fails. Reads need no such door and use the descriptor.

Whatever fails raises the `OSError` of the system with the name of the file in it, because an error
number on a descriptor tells an operator nothing.
"""

import contextlib
import ctypes
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

Buffer = bytes | bytearray | memoryview

_LIBC = ctypes.CDLL(None, use_errno=True)


class OpenFile:
    """A descriptor that closes itself when the last user lets go of it.

    A fetch answer may still be sending from a segment that retention has deleted meanwhile; the
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
        with contextlib.suppress(OSError):  # nobody is left to tell
            os.close(self.fd)


class FileSlice:
    """Bytes of a file that have not been read: what a fetch answers with.

    `fileno()`, `position` and `len()` are what `os.sendfile` wants; `read()` serves those that
    must see the bytes (TLS, conversion to old formats).
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
    """How many `leaving_out_syncs` this thread is in."""

    depth = 0


class FileSystem:
    """What the log does to a disk. Every method finishes its work or raises a named OSError."""

    _deferring = _Deferring()

    def open_file(self, path: Path, *, create: bool = False) -> OpenFile:
        """Open for reading and writing; a missing file is an error unless `create`."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OpenFile(os.open(path, flags, 0o644), path)

    def create_file(self, path: Path) -> OpenFile:
        """Make a new, empty file; one of that name is removed, but stays for who has it open."""
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL
        try:
            fd = os.open(path, flags, 0o644)
        except FileExistsError:
            self.remove(path)
            fd = os.open(path, flags, 0o644)
        return OpenFile(fd, path)

    def write(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> None:
        """Write all of `buffers`, one after the other, from `position` on.

        After an error any part of them may be in the file: the caller cuts it off.
        """
        try:
            written = os.pwritev(file.fd, buffers, position)
            if written != sum(map(len, buffers)):
                self._write_rest(file, b"".join(buffers)[written:], position + written)
        except OSError as error:
            _name(error, file.path)

    @staticmethod
    def _write_rest(file: OpenFile, rest: bytes, position: int) -> None:
        """Go on after a short write, until the system takes everything or says why not."""
        while rest:
            written = os.pwrite(file.fd, rest, position)
            rest, position = rest[written:], position + written

    def truncate(self, file: OpenFile, size: int) -> None:
        """Cut the file, or lengthen it with a hole."""
        try:
            os.ftruncate(file.fd, size)
        except OSError as error:
            _name(error, file.path)

    @contextlib.contextmanager
    def leaving_out_syncs(self) -> Iterator[None]:
        """Leave out every sync of this thread inside; `sync_file_system` must make up for them.

        For work that makes thousands of small files: one flush instead of thousands. Nothing of
        it may be acknowledged before.
        """
        self._deferring.depth += 1
        try:
            yield
        finally:
            self._deferring.depth -= 1

    def sync_file_system(self, path: Path) -> None:
        """Return when everything on the path's file system is on the medium."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if _LIBC.syncfs(fd):
                _name(OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())), path)
        finally:
            os.close(fd)

    def sync(self, file: OpenFile) -> None:
        """Return when the file's bytes are on the medium."""
        if self._deferring.depth:
            return
        try:
            os.fsync(file.fd)
        except OSError as error:
            _name(error, file.path)

    def sync_directory(self, path: Path) -> None:
        """Return when the names in the directory are on the medium; a missing one is no error."""
        if self._deferring.depth:
            return
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            os.fsync(fd)
        except OSError as error:
            _name(error, path)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Give the file its new name at once, replacing what had it."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Delete the file if it is there."""
        path.unlink(missing_ok=True)

    def make_directory(self, path: Path) -> None:
        """Create the directory and its parents if they are missing."""
        path.mkdir(parents=True, exist_ok=True)

    def remove_directory(self, path: Path) -> None:
        """Delete the directory with all that is in it."""
        shutil.rmtree(path)

    def write_file(self, path: Path, data: bytes, *, sync: bool) -> None:
        """Create or overwrite a whole file; a crash on the way may leave a part of it."""
        file = self.create_file(path)
        self.write(file, [data], 0)
        if sync:
            self.sync(file)

    def replace_file(self, path: Path, data: bytes) -> None:
        """Exchange a whole file at once: after a crash it holds the old bytes or the new ones."""
        temporary = path.with_name(path.name + ".tmp")
        self.write_file(temporary, data, sync=True)
        self.rename(temporary, path)
        self.sync_directory(path.parent)


DISK = FileSystem()
