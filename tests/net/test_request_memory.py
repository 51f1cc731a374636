"""Large requests occupy bounded memory, over all connections; none of them waits for ever."""

import asyncio
import contextlib
import re
import socket
import time
from pathlib import Path

import pytest

from broker.net.connection import Peer, ResponseParts
from broker.net.request_memory import RequestMemory, default_limit_bytes
from broker.protocol.framing import FrameBuffer
from broker.protocol.messages.metadata import MetadataRequest
from tests.net.support import connect, echo, framed, in_loop, listening, quotas, until
from tests.support.broker import RunningBroker, running_broker
from tests.support.wire import WireClient

MIB = 2**20


def resident_mb(broker: RunningBroker) -> int:
    status = Path(f"/proc/{broker.server.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) // 1024


def send_for(connections: list[socket.socket], num_bytes: int, seconds: float) -> int:
    """Send up to `num_bytes` on each, as far as the broker reads; how many bytes it took."""
    chunk, sent = bytes(MIB), dict.fromkeys(connections, 0)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and min(sent.values()) < num_bytes:
        for connection in connections:
            if sent[connection] < num_bytes:
                with contextlib.suppress(BlockingIOError):
                    sent[connection] += connection.send(chunk)
    return sum(sent.values())


def test_regression_unfinished_requests_occupy_no_more_than_the_limit(tmp_path: Path) -> None:
    """Before: 30 connections with 40 MB each of a request of 100 MB made the broker hold 2 GB."""
    with running_broker(tmp_path, queued_max_request_bytes=100 * MIB) as broker:
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        before_mb = resident_mb(broker)
        stalled = [socket.create_connection((host, int(port))) for _ in range(30)]
        for connection in stalled:
            connection.sendall((100 * MIB).to_bytes(4, "big"))
            connection.setblocking(False)
        assert send_for(stalled, 40 * MIB, seconds=4) > 140 * MIB
        assert resident_mb(broker) - before_mb < 100 + 100 + 30  # one may exceed the limit
        with WireClient(broker.bootstrap_servers) as small:
            assert small.ask(MetadataRequest(topics=[]), 12).cluster_id is not None
        for connection in stalled:
            connection.close()
        deadline = time.monotonic() + 20
        while resident_mb(broker) - before_mb > 20:
            assert time.monotonic() < deadline, "memory of closed connections is not freed"
            time.sleep(0.1)


@in_loop
async def test_requests_beyond_the_limit_are_answered_one_after_the_other() -> None:
    shared = quotas(socket_request_max_bytes=8 * MIB, queued_max_request_bytes=2 * MIB)
    bodies = [bytes([number]) * 5 * MIB for number in range(6)]
    async with listening(echo, shared=shared) as listener:
        clients = [await connect(listener) for _ in bodies]
        async with asyncio.TaskGroup() as group:
            answers = [
                group.create_task(client.ask(body))
                for client, body in zip(clients, bodies, strict=True)
            ]
        assert [answer.result() for answer in answers] == bodies
        await until(lambda: not shared.request_memory.used_bytes)
        for client in clients:
            client.leave()


@in_loop
async def test_request_waiting_for_memory_continues_when_the_older_one_is_closed() -> None:
    shared = quotas(socket_request_max_bytes=8 * MIB, queued_max_request_bytes=MIB)
    async with (
        listening(echo, shared=shared) as listener,
        await connect(listener) as stalled,
        await connect(listener) as waiting,
        await connect(listener) as small,
    ):
        stalled.writer.write(framed(bytes(5 * MIB))[: 2 * MIB])
        await until(lambda: shared.request_memory.used_bytes > MIB)
        answer = asyncio.create_task(waiting.ask(bytes(5 * MIB)))
        await until(lambda: shared.request_memory.has_waiting)
        assert await small.ask(b"small") == b"small"
        assert not answer.done()
        stalled.leave()
        assert await answer == bytes(5 * MIB)


@in_loop
async def test_stalled_request_is_closed_while_others_wait_for_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("broker.net.listener._QUIET_S", 0.02)
    monkeypatch.setattr("broker.net.connection._PROGRESS_INTERVAL_S", 0.1)
    shared = quotas(socket_request_max_bytes=8 * MIB, queued_max_request_bytes=MIB)
    async with (
        listening(echo, shared=shared) as listener,
        await connect(listener) as stalled,
        await connect(listener) as waiting,
    ):
        stalled.writer.write(framed(bytes(5 * MIB))[: 2 * MIB])
        await until(lambda: shared.request_memory.used_bytes > MIB)
        await asyncio.sleep(0.3)
        assert listener.num_connections == 2  # no other request waits: it may be slow
        assert await waiting.ask(bytes(5 * MIB)) == bytes(5 * MIB)
        assert await stalled.is_closed()
    assert "request too slow" in caplog.text


@in_loop
async def test_memory_is_counted_until_a_deferred_response_is_sent() -> None:
    may_answer = asyncio.Event()

    async def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        await may_answer.wait()
        return echo(frame, peer)

    shared = quotas(socket_request_max_bytes=8 * MIB)
    async with (
        listening(answer, shared=shared) as listener,
        await connect(listener) as client,
    ):
        asked = asyncio.create_task(client.ask(bytes(5 * MIB)))
        await until(lambda: any(c.has_request_in_progress for c in listener._connections))
        assert shared.request_memory.used_bytes > 4 * MIB
        may_answer.set()
        await asked
        await until(lambda: not shared.request_memory.used_bytes)


def test_only_the_oldest_request_is_read_once_the_limit_is_reached() -> None:
    memory = RequestMemory(100)
    first, second = FrameBuffer(1000), FrameBuffer(1000)
    assert memory.may_read(first, 60)
    assert not memory.may_read(second, 50)
    assert memory.may_read(first, 500)
    memory.release(first)
    assert memory.may_read(second, 70)
    assert memory.used_bytes == 70


def test_default_limit_has_room_for_two_requests_of_the_maximum_size() -> None:
    assert default_limit_bytes(2**40) == 2**41
    assert default_limit_bytes(1) > 2**20
