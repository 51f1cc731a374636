"""File descriptors that run out are back-pressure on new connections, not a failure."""

import asyncio
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.net.connection import Peer, ResponseParts
from broker.protocol.messages.metadata import MetadataRequest
from tests.net.support import connect as connect_client
from tests.net.support import echo, framed, in_loop, listening, quotas, until
from tests.support.broker import STARTED
from tests.support.processes import ServerProcess
from tests.support.wire import WireClient

LIMIT = 120
"""Enough for a broker that serves a few dozen clients."""


@contextmanager
def limited_broker(directory: Path, ulimit: str) -> Iterator[tuple[ServerProcess, str]]:
    """A broker under `ulimit OPTIONS`; the process and its address."""
    broker = [
        *(sys.executable, "-m", "broker"),
        "--override=listeners=PLAINTEXT://127.0.0.1:0",
        f"--override=log.dirs={directory / 'data'}",
        # Checkpoints need descriptors: they are written while connections take all others.
        "--override=log.flush.offset.checkpoint.interval.ms=50",
        "--override=replica.high.watermark.checkpoint.interval.ms=50",
    ]
    command = ["sh", "-c", f'ulimit {ulimit} && exec "$@"', "sh", *broker]
    with ServerProcess(command, directory / "broker.log") as server:
        yield server, server.wait_for_line(STARTED, timeout_s=20)[1]


def open_files_limit(server: ServerProcess) -> int:
    limits = Path(f"/proc/{server.process.pid}/limits").read_text()
    return int(re.findall(r"Max open files\s+(\d+)", limits)[0])


def answers_metadata(address: str) -> bool:
    with WireClient(address) as wire:
        return wire.ask(MetadataRequest(topics=[]), 12).cluster_id is not None


def connect(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), 10)


def test_soft_limit_is_raised_to_the_hard_limit_at_start(tmp_path: Path) -> None:
    with limited_broker(tmp_path, "-S -n 100") as (server, address):
        assert open_files_limit(server) > 100
        assert answers_metadata(address)


def test_regression_idle_connections_up_to_the_limit_do_not_stop_the_broker(tmp_path: Path) -> None:
    """Before: accept failed with EMFILE, then a checkpoint, then the log directory, then all."""
    with limited_broker(tmp_path, f"-n {LIMIT}") as (server, address):
        # The backlog of the kernel, 50, takes those that the broker does not accept.
        idle = [connect(address) for _ in range(LIMIT + 20)]
        time.sleep(1.5)  # from 1 s on a connection counts as idle
        assert answers_metadata(address)
        assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < LIMIT
        for connection in idle:
            connection.close()
        assert answers_metadata(address)
        output = server.log_file.read_text()
        assert output.count("too many open files") == 1
        assert not re.search("ERROR|CRITICAL|Traceback", output)
        assert server.stop() == 0


@in_loop
async def test_connection_with_a_request_in_progress_is_not_closed_for_its_descriptor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.net.connection_quotas._MIN_IDLE_S", 0.0)
    may_answer = asyncio.Event()

    async def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        await may_answer.wait()
        return echo(frame, peer)

    shared = quotas()
    async with (
        listening(answer, shared=shared) as listener,
        await connect_client(listener) as busy,
        await connect_client(listener) as idle,
    ):
        busy.writer.write(framed(b"in progress"))
        await until(lambda: any(c.has_request_in_progress for c in listener._connections))
        await until(lambda: listener.num_connections == 2)
        with monkeypatch.context() as patched:
            patched.setattr(
                "broker.net.connection_quotas.has_descriptors_for_connections",
                lambda _: listener.num_connections < 2,
            )
            await shared.wait_for_descriptors(0)
        assert await idle.is_closed()
        may_answer.set()
        assert await busy.receive() == b"in progress"
