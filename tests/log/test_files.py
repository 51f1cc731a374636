"""FileSystem: complete writes, errors with file names, slices of deleted files."""

import errno
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from broker.log import files
from broker.log.files import DISK, FileSlice
from broker.system_calls import pwritev, sendfile
from tests.log.support import BreakingDisk


def test_buffers_are_written_one_after_the_other(tmp_path: Path) -> None:
    file = DISK.open_file(tmp_path / "file", create=True)
    DISK.write(file, [b"ab", memoryview(b"xcdx")[1:3], bytearray(b"e")], 0)
    DISK.write(file, [b"!"], 5)
    assert file.read(0, 100) == b"abcde!"


def test_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pwritev

    def short(fd: int, buffers: Sequence[bytes], position: int) -> int:
        return whole(fd, [buffers[0][:1]], position)

    monkeypatch.setattr(files, "pwritev", short)
    file = DISK.open_file(tmp_path / "file", create=True)
    DISK.write(file, [b"abc", b"def"], 0)
    assert file.read(0, 100) == b"abcdef"


def test_full_disk_after_a_short_write_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "pwritev", lambda fd, buffers, position: 2)
    monkeypatch.setattr(os, "pwrite", full)
    file = DISK.open_file(tmp_path / "file", create=True)
    with pytest.raises(OSError, match="No space left") as failure:
        DISK.write(file, [b"abc"], 0)
    assert failure.value.filename == str(tmp_path / "file")


@pytest.mark.parametrize("action", ["write", "truncate", "sync"])
def test_error_on_a_descriptor_names_the_file(action: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    file = DISK.open_file(tmp_path / "file")
    fd, file.fd = file.fd, 999_999  # a closed descriptor
    arguments = {"write": ([b"x"], 0), "truncate": (1,), "sync": ()}[action]
    with pytest.raises(OSError, match="Bad file descriptor") as failure:
        getattr(DISK, action)(file, *arguments)
    file.fd = fd
    assert failure.value.filename == str(tmp_path / "file")


def test_missing_file_is_created_only_with_create(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DISK.open_file(tmp_path / "file")
    DISK.open_file(tmp_path / "file", create=True)
    assert (tmp_path / "file").exists()


def test_descriptor_closes_with_its_last_user(tmp_path: Path) -> None:
    file = DISK.open_file(tmp_path / "file", create=True)
    piece = FileSlice(file, 0, 0)
    fd = file.fd
    del file
    os.fstat(fd)
    del piece
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_slice_can_be_sent_with_sendfile(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    piece = FileSlice(DISK.open_file(tmp_path / "file"), 3, 4)
    assert (len(piece), piece.read()) == (4, b"3456")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sent = sendfile(ours.fileno(), piece.fileno(), piece.position, len(piece))
        assert sent == 4
        assert theirs.recv(100) == b"3456"


def test_read_ends_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123")
    file = DISK.open_file(tmp_path / "file")
    assert file.read(2, 100) == b"23"
    assert file.read(9, 100) == b""


def test_replaced_file_shortens(tmp_path: Path) -> None:
    path = tmp_path / "file"
    DISK.replace_file(path, b"a long content")
    DISK.replace_file(path, b"short")
    assert path.read_bytes() == b"short"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_directory_is_no_error_to_sync(tmp_path: Path) -> None:
    DISK.sync_directory(tmp_path / "gone")


def test_breaking_disk_fails_at_the_given_change(tmp_path: Path) -> None:
    disk = BreakingDisk(fails_at=2, error=errno.ENOSPC, torn_bytes=2, stays_broken=False)
    file = disk.open_file(tmp_path / "file", create=True)
    disk.write(file, [b"abc"], 0)
    with pytest.raises(OSError, match="No space left"):
        disk.write(file, [b"def"], 3)
    assert file.read(0, 10) == b"abcde"
    disk.write(file, [b"def"], 3)
    assert file.read(0, 10) == b"abcdef"


def test_new_file_takes_the_name_of_an_old_one_that_stays_whole_for_its_readers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    old = DISK.open_file(path)
    assert DISK.create_file(path).size() == 0
    assert old.read(0, 10) == b"old"
