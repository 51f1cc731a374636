"""Server processes: ready when they listen, named in errors, ended afterwards."""

import sys
from pathlib import Path

import pytest

from tests.support.processes import ServerProcess, free_port

LISTENER = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening on", server.getsockname()[1], flush=True)
while True:
    server.accept()
"""


def test_server_is_ready_when_it_listens_and_gone_after_the_block(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-c", LISTENER, str(port)]
    with ServerProcess(command, tmp_path / "listener.log") as server:
        server.wait_for_port(port)
        assert server.wait_for_line(r"listening on (\d+)")[1] == str(port)
        assert server.process.poll() is None
    assert server.process.poll() is not None


def test_server_that_dies_is_reported_with_what_it_said(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such log dir')"]
    server = ServerProcess(command, tmp_path / "broker.log")
    with pytest.raises(AssertionError, match=r"(?s)broker .*status 1.*no such log dir"):
        server.wait_for_port(free_port())


def test_server_that_is_too_slow_is_stopped(tmp_path: Path) -> None:
    server = ServerProcess([sys.executable, "-c", "input()"], tmp_path / "slow.log")
    with pytest.raises(AssertionError, match=r"did not print 'ready'"):
        server.wait_for_line("ready", timeout_s=0.1)
    assert server.process.poll() is not None


def test_process_that_ignores_the_request_to_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.processes.STOP_TIMEOUT_S", 0.2)
    stubborn = (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True)\nsignal.pause()"
    )
    server = ServerProcess([sys.executable, "-c", stubborn], tmp_path / "stubborn.log")
    server.wait_for_line("ready")
    assert server.stop() == -9
