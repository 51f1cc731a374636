"""One connection: order, deferred responses, slow readers, invalid bytes, lost clients."""

import asyncio
import logging
import os
import select
import socket
import struct
import tempfile
from collections.abc import Awaitable
from typing import Any

import pytest

from broker.net import transport
from broker.net.connection import CloseConnection, Peer, ResponseParts
from broker.protocol.errors import DecodeError
from broker.system_calls import sendfile
from tests.net.support import (
    RawClient,
    connect,
    connect_with_small_buffer,
    echo,
    framed,
    in_loop,
    listening,
    receive_exactly,
    until,
)

reports_the_end = pytest.mark.skipif(
    not hasattr(select, "epoll"), reason="only epoll reports the end while nothing may be read"
)


class LateAnswers:
    """Responds to b"late…" when `may_answer` is set, else at once; records the requests."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.may_answer = asyncio.Event()
        self.cancelled = 0

    def __call__(self, frame: memoryview, peer: Peer) -> ResponseParts | Awaitable[ResponseParts]:
        self.asked.append(bytes(frame))
        return self._late(frame) if bytes(frame[:4]) == b"late" else echo(frame, peer)

    async def _late(self, frame: memoryview) -> ResponseParts:
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        # Only now: the frame must still be what it was.
        return [bytearray(framed(bytes(frame)))]


@in_loop
async def test_pipelined_requests_are_answered_in_order_one_at_a_time() -> None:
    answers = LateAnswers()
    requests = [b"1", b"2", b"late 3", b"4", b"late 5", b"6" * 5000, b"7"]
    async with listening(answers) as listener, await connect(listener) as client:
        client.writer.write(b"".join(map(framed, requests)))
        assert [await client.receive() for _ in range(2)] == [b"1", b"2"]
        await until(lambda: len(answers.asked) == 3)
        assert answers.asked == requests[:3]
        answers.may_answer.set()
        assert [await client.receive() for _ in range(5)] == requests[2:]


@in_loop
async def test_pipelining_client_is_read_again_at_once_up_to_a_limit() -> None:
    asked, asked_before_others = 0, []
    loop = asyncio.get_running_loop()

    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        nonlocal asked
        if not asked:
            loop.call_soon(lambda: asked_before_others.append(asked))
        asked += 1
        if 2 <= asked < 20:
            client.send(framed(b"the next request is here before the answer"))
        return echo(frame, peer)

    async with listening(answer) as listener:
        with socket.create_connection(("127.0.0.1", listener.address.port)) as client:
            client.send(framed(b"two at once:") + framed(b"it sends much"))
            await until(lambda: asked == 20)
    assert asked_before_others == [5]


@in_loop
async def test_regression_many_small_requests_do_not_delay_other_clients() -> None:
    asked, asked_before_others = 0, []
    loop = asyncio.get_running_loop()

    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        nonlocal asked
        if not asked:
            loop.call_soon(lambda: asked_before_others.append(asked))
        asked += 1
        if asked == 10:
            client.send(framed(b"one more"))
        return echo(frame, peer)

    async with listening(answer) as listener:
        with socket.create_connection(("127.0.0.1", listener.address.port)) as client:
            client.send(framed(b"small") * 10)
            await until(lambda: asked == 11)
    assert asked_before_others == [10]


@in_loop
async def test_request_without_response_is_skipped() -> None:
    def answer(frame: memoryview, peer: Peer) -> ResponseParts | Awaitable[ResponseParts]:
        if bytes(frame[:4]) == b"none":
            return None
        return nothing() if bytes(frame[:4]) == b"late" else echo(frame, peer)

    async def nothing() -> ResponseParts:
        return None

    async with listening(answer) as listener, await connect(listener) as client:
        client.writer.write(b"".join(map(framed, [b"none", b"late", b"none", b"answered"])))
        assert await client.receive() == b"answered"


@in_loop
async def test_frame_that_arrives_byte_by_byte_is_processed_as_one() -> None:
    async with listening(echo) as listener, await connect(listener) as client:
        client.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(b"request one") + framed(b"request two"):
            client.writer.write(bytes((byte,)))
            await asyncio.sleep(0)
        assert [await client.receive() for _ in range(2)] == [b"request one", b"request two"]


@in_loop
async def test_frame_of_fifty_megabytes_is_echoed_unchanged() -> None:
    body = os.urandom(2**20) * 50
    async with (
        listening(echo, socket_request_max_bytes=len(body)) as listener,
        await connect(listener) as client,
    ):
        assert await client.ask(body) == body
        assert await client.ask(b"small") == b"small"


@in_loop
async def test_frame_above_the_limit_is_rejected_before_its_bytes_arrive(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        listening(echo, socket_request_max_bytes=1000) as listener,
        await connect(listener) as client,
    ):
        name = _name_of(client)
        assert await client.ask(bytes(1000)) == bytes(1000)
        client.writer.write((1001).to_bytes(4, "big"))
        assert await client.is_closed()
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == [
        f"closing connection peer={name} "
        "reason=a frame of 1001 bytes is announced, 0 to 1000 are allowed"
    ]


def _name_of(client: RawClient) -> str:
    host, port = client.writer.get_extra_info("sockname")
    return f"{host}:{port}"


def failing(error: Exception) -> Any:
    """A request handler that fails at once on b"fail" and later on b"late"."""

    def answer(frame: memoryview, peer: Peer) -> ResponseParts | Awaitable[ResponseParts]:
        if bytes(frame) == b"fail":
            raise error
        return fail_later() if bytes(frame) == b"late" else echo(frame, peer)

    async def fail_later() -> ResponseParts:
        await asyncio.sleep(0)
        raise error

    return answer


@pytest.mark.parametrize("request_body", [b"fail", b"late"])
@pytest.mark.parametrize(
    ("error", "level"),
    [
        (DecodeError("what is this"), logging.WARNING),
        (CloseConnection("no acks, no error"), logging.WARNING),
        (RuntimeError("a bug"), logging.ERROR),
    ],
)
@in_loop
async def test_failure_logs_one_line_and_closes_only_that_connection(
    caplog: pytest.LogCaptureFixture, request_body: bytes, error: Exception, level: int
) -> None:
    async with (
        listening(failing(error)) as listener,
        await connect(listener) as bad,
        await connect(listener) as good,
    ):
        name = _name_of(bad)
        assert await good.ask(b"before") == b"before"
        bad.writer.write(framed(request_body) + framed(b"not looked at any more"))
        assert await bad.is_closed()
        assert await good.ask(b"after") == b"after"
        await until(lambda: listener.num_connections == 1)
    (record,) = [record for record in caplog.records if record.levelno > logging.INFO]
    assert record.levelno == level
    assert record.getMessage().startswith(f"closing connection peer={name}")
    assert str(error) in (record.getMessage() if level == logging.WARNING else caplog.text)


@in_loop
async def test_client_that_does_not_read_is_blocked_and_slows_no_other() -> None:
    num_asked = 0
    answer_bytes = 100_000

    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        nonlocal num_asked
        num_asked += bytes(frame[:4]) == b"slow"
        return [bytearray(framed(bytes(frame).ljust(answer_bytes, b".")))]

    requests = [b"slow %d" % number for number in range(300)]
    async with listening(answer) as listener:
        slow = await connect_with_small_buffer(listener)
        await asyncio.get_running_loop().sock_sendall(slow, b"".join(map(framed, requests)))
        async with await connect(listener) as quick:
            before = -1
            while before != num_asked:  # until it is stuck
                before = num_asked
                for _ in range(20):
                    assert (await quick.ask(b"quick"))[:5] == b"quick"
            # What the kernel holds, and one response on top; not all of the 30 MB.
            assert 0 < num_asked < 100
            received = await receive_exactly(slow, len(requests) * (answer_bytes + 4))
        slow.close()
    assert received == b"".join(framed(r.ljust(answer_bytes, b".")) for r in requests)
    assert num_asked == len(requests)


class Slice:
    """A file slice that does not begin at the start of the file."""

    def __init__(self, data: bytes) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close
        self._file.write(b"others" + data)
        self._file.flush()
        self.position = 6

    def __len__(self) -> int:
        return os.fstat(self.fileno()).st_size - self.position

    def fileno(self) -> int:
        return self._file.fileno()

    def read(self) -> bytes:
        return os.pread(self.fileno(), len(self), self.position)

    def close(self) -> None:
        self._file.close()


@pytest.mark.parametrize("last", [0, 1, 3_000_000])
@in_loop
async def test_large_response_of_buffers_and_files_arrives_complete_at_a_slow_reader(
    last: int,
) -> None:
    pieces: list[bytes] = [os.urandom(size) for size in (10, 3_000_000, 0, 5, 2_000_000, 0, last)]
    slices = {number: Slice(pieces[number]) for number in (2, 4, 6)}
    parts: list[Any] = [slices.get(number, piece) for number, piece in enumerate(pieces)]
    size = sum(map(len, pieces))

    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        return [bytearray(size.to_bytes(4, "big")), *parts]

    async with listening(answer) as listener:
        client = await connect_with_small_buffer(listener)
        await asyncio.get_running_loop().sock_sendall(client, framed(b"1") + framed(b"2"))
        assert await receive_exactly(client, 2 * (size + 4)) == framed(b"".join(pieces)) * 2
        client.close()
    for part in slices.values():
        part.close()


@in_loop
async def test_regression_response_continues_after_a_short_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The socket was not full, so the poller reports no event."""
    records = Slice(os.urandom(1_000_000))

    def cut_short(out_fd: int, in_fd: int, offset: int, count: int) -> int:
        return sendfile(out_fd, in_fd, offset, min(count, 300_000))

    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        return [bytearray((1_000_000).to_bytes(4, "big")), records]

    monkeypatch.setattr(transport, "sendfile", cut_short)
    async with listening(answer) as listener, await connect(listener) as client:
        assert await client.ask(b"") == records.read()
    records.close()


@reports_the_end
@in_loop
async def test_reset_connection_cancels_its_deferred_response() -> None:
    """No client would read the response, which may take long."""
    answers = LateAnswers()
    async with listening(answers) as listener:
        client = await connect(listener)
        client.writer.write(framed(b"late"))
        await until(lambda: len(answers.asked) == 1)
        raw: socket.socket = client.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.leave()
        await until(lambda: listener.num_connections == 0 and answers.cancelled == 1)


@in_loop
async def test_regression_response_of_more_parts_than_sendmsg_takes_arrives() -> None:
    parts = [b"%05d" % number for number in range(3000)]

    def answer(frame: memoryview, peer: Peer) -> ResponseParts:
        return [bytearray((15_000).to_bytes(4, "big")), *parts]

    async with listening(answer) as listener, await connect(listener) as client:
        assert await client.ask(b"") == b"".join(parts)


@in_loop
async def test_half_closed_client_still_gets_its_responses() -> None:
    answers = LateAnswers()
    async with listening(answers) as listener, await connect(listener) as client:
        client.writer.write(framed(b"late 1") + framed(b"2") + framed(b"late 3"))
        client.writer.write_eof()
        await until(lambda: len(answers.asked) == 1)
        answers.may_answer.set()
        assert [await client.receive() for _ in range(3)] == [b"late 1", b"2", b"late 3"]
        assert await client.is_closed()
        await until(lambda: listener.num_connections == 0)


@reports_the_end
@pytest.mark.parametrize("at_once", [2, 5])
@in_loop
async def test_half_closed_slow_client_gets_every_response_before_the_end(at_once: int) -> None:
    """The first of five requests blocks; the others are in the buffer or still in the kernel."""
    answers = LateAnswers()
    large = b"large".ljust(5_000_000, b".")

    def answer(frame: memoryview, peer: Peer) -> ResponseParts | Awaitable[ResponseParts]:
        if bytes(frame[:5]) == b"large":
            return [bytearray(framed(large))]
        return answers(frame, peer)

    async with listening(answer) as listener:
        client = await connect_with_small_buffer(listener)
        requests = [framed(body) for body in (b"large", b"1", b"large", b"late 2", b"3")]
        client.send(b"".join(requests[:at_once]))
        await until(lambda: any(c.transport.has_unsent for c in listener._connections))
        client.send(b"".join(requests[at_once:]))
        client.shutdown(socket.SHUT_WR)
        (connection,) = listener._connections
        await until(lambda: connection._is_at_end)
        answers.may_answer.set()
        expected = [large, b"1", large, b"late 2", b"3"]
        received = await receive_exactly(client, sum(len(body) + 4 for body in expected))
        assert received == b"".join(map(framed, expected))
        assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
        await until(lambda: listener.num_connections == 0)
        client.close()


@in_loop
async def test_half_closed_slow_client_is_closed_once_it_has_read() -> None:
    async with listening(lambda frame, peer: [bytearray(framed(bytes(5_000_000)))]) as listener:
        client = await connect_with_small_buffer(listener)
        await asyncio.get_running_loop().sock_sendall(client, framed(b"one"))
        client.shutdown(socket.SHUT_WR)
        await receive_exactly(client, 5_000_004)
        assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
        await until(lambda: listener.num_connections == 0)
        client.close()


@pytest.mark.parametrize("with_reset", [False, True])
@in_loop
async def test_client_that_leaves_during_a_deferred_response_is_closed_without_a_warning(
    caplog: pytest.LogCaptureFixture, with_reset: bool
) -> None:
    answers = LateAnswers()
    async with listening(answers) as listener:
        client = await connect(listener)
        client.writer.write(framed(b"late") + framed(b"another"))
        await until(lambda: answers.asked == [b"late"])
        if with_reset:
            raw: socket.socket = client.writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.leave()
        await asyncio.sleep(0.01)
        answers.may_answer.set()
        await until(lambda: listener.num_connections == 0)
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


@in_loop
async def test_slow_client_that_resets_its_connection_is_closed() -> None:
    num_asked = 0

    def much(frame: memoryview, peer: Peer) -> ResponseParts:
        nonlocal num_asked
        num_asked += 1
        return [bytearray(framed(bytes(20_000_000)))]

    async with listening(much) as listener:
        client = await connect_with_small_buffer(listener)
        await asyncio.get_running_loop().sock_sendall(client, framed(b"much") * 2)
        await until(lambda: num_asked == 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        await until(lambda: listener.num_connections == 0)
    assert num_asked == 1


@in_loop
async def test_stopping_the_listener_cancels_a_deferred_response() -> None:
    answers = LateAnswers()
    async with listening(answers) as listener, await connect(listener) as client:
        client.writer.write(framed(b"late"))
        await until(lambda: len(answers.asked) == 1)
        await listener.stop()
        await until(lambda: answers.cancelled == 1)
        assert await client.is_closed()
