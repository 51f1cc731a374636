"""Everything works without what only Linux has; `posix/sitecustomize.py` removes it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from broker import system_calls
from broker.net import poller
from broker.net.file_descriptors import raise_soft_limit

ROOT = Path(__file__).parents[2]
POSIX = Path(__file__).parent / "posix"

_IMPORT_ALL = """
import importlib, pkgutil, select, os
assert not hasattr(select, "epoll") and not hasattr(os, "sendfile"), "sitecustomize was not loaded"
import broker, kctl
skipped = ("broker.net.epoll_poller", "kctl.top", "kctl.pytest_plugin")  # Linux; kctl[top]; pytest
names = [found.name for package in (broker, kctl)
         for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    if not name.endswith("__main__") and not name.startswith(skipped):
        importlib.import_module(name)
from broker.net.poller import SelectorPoller, new_poller
assert isinstance(new_poller(), SelectorPoller)
print(len(names))
"""


def run_portable(*command: str) -> str:
    """The output of a Python without the names of Linux."""
    result = subprocess.run(
        [sys.executable, *command],
        env=os.environ | {"PYTHONPATH": f"{POSIX}:{ROOT}", "PYTHONDONTWRITEBYTECODE": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return result.stdout


def test_every_module_is_imported_without_the_names_of_linux() -> None:
    assert int(run_portable("-c", _IMPORT_ALL)) > 500


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_clients_are_served_without_the_names_of_linux() -> None:
    """The client tests with librdkafka, connections, TLS, and `kctl dev`, in a process like that.

    `make test-portable` runs more of them.
    """
    tests = ("tests/clients/test_produce.py", "tests/clients/test_consume.py")
    more = ("tests/net/test_connection.py", "tests/secured/test_tls.py")
    chosen = "librdkafka or test_connection or test_openssl or test_client_certificate"
    done = run_portable("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *more, "-k", chosen)
    assert " passed" in done


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_development_broker_is_found_and_stopped_without_proc(tmp_path: Path) -> None:
    def kctl(*words: str) -> str:
        return run_portable("-m", "kctl", "dev", *words, "--dir", str(tmp_path))

    kctl("up", "--port", "0")
    try:
        assert "running" in kctl("status")
    finally:
        kctl("down")
    assert "running" not in kctl("status")


def test_events_have_the_values_of_epoll() -> None:
    select = pytest.importorskip("select")
    if not hasattr(select, "epoll"):
        pytest.skip("this system has no epoll")
    assert (poller.READABLE, poller.WRITABLE) == (select.EPOLLIN, select.EPOLLOUT)
    assert (poller.AT_END, poller.GONE) == (select.EPOLLRDHUP, select.EPOLLERR | select.EPOLLHUP)


class TestFallbacksOfSystemCalls:
    @pytest.fixture
    def fd(self, tmp_path: Path) -> int:
        (tmp_path / "file").write_bytes(b"0123456789")
        return os.open(tmp_path / "file", os.O_RDWR)

    def test_buffers_are_written_at_the_position(self, fd: int) -> None:
        assert system_calls._pwritev(fd, [b"ab", bytearray(b"c")], 8) == 3
        assert os.pread(fd, 100, 0) == b"01234567abc"

    def test_buffer_is_filled_up_to_the_end_of_the_file(self, fd: int) -> None:
        room = memoryview(bytearray(4))
        assert system_calls._preadv(fd, [room], 2) == 4
        assert bytes(room) == b"2345"
        assert system_calls._preadv(fd, [room], 8) == 2
        assert system_calls._preadv(fd, [room], 10) == 0

    def test_file_is_sent_and_its_end_is_zero(self, fd: int) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            assert system_calls._sendfile(ours.fileno(), fd, 3, 4) == 4
            assert theirs.recv(100) == b"3456"
            assert system_calls._sendfile(ours.fileno(), fd, 10, 4) == 0

    def test_allocated_part_keeps_its_bytes_and_has_no_holes(self, fd: int) -> None:
        os.ftruncate(fd, 1_000_000)
        before = os.fstat(fd).st_blocks
        system_calls._posix_fallocate(fd, 5, 600_000)
        assert os.fstat(fd).st_blocks > before + 600_000 // 512 - 16
        assert os.pread(fd, 12, 0) == b"0123456789\0\0"
        assert os.fstat(fd).st_size == 1_000_000

    def test_file_systems_are_flushed_without_syncfs(
        self, fd: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flushed = []
        monkeypatch.setattr(system_calls, "_SYNCFS", None)
        monkeypatch.setattr(os, "sync", lambda: flushed.append(True))
        system_calls.sync_file_system(fd)
        assert flushed == [True]


def test_hard_limit_that_is_not_granted_is_replaced_by_open_max(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """macOS: the hard limit is infinite, and a soft limit above OPEN_MAX is refused."""
    import resource

    asked = []

    def refuse_infinity(_: int, limits: tuple[int, int]) -> None:
        asked.append(limits[0])
        if limits[0] > 10_240:
            raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 2**63 - 1))
    monkeypatch.setattr(resource, "setrlimit", refuse_infinity)
    assert raise_soft_limit() == (256, 10_240)
    assert asked == [2**63 - 1, 10_240]
