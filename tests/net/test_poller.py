"""The broker's event loop: whoever watches a socket is told, and nobody else suffers from it."""

import asyncio
import socket

import pytest

from broker.net.listener import Limits, Listener
from broker.net.poller import READABLE, running_poller
from broker.net.sender import Sender
from tests.net.support import LOCAL, connect, echo, framed, in_loop, listening, until


@in_loop
async def test_one_that_fails_is_logged_and_the_others_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    poller, told = running_poller(), []
    pairs = [socket.socketpair() for _ in range(2)]

    def fail(events: int) -> None:
        if events & READABLE:
            raise KeyError("surprise")

    poller.watch(pairs[0][0].fileno(), fail)
    poller.watch(pairs[1][0].fileno(), told.append)
    for _, other in pairs:
        other.send(b"x")
    await until(lambda: any(events & READABLE for events in told))
    assert "KeyError: 'surprise'" in caplog.text
    for pair in pairs:
        poller.forget(pair[0].fileno())
        for end in pair:
            end.close()


@in_loop
async def test_who_is_forgotten_is_told_no_more() -> None:
    poller, told = running_poller(), []
    mine, other = socket.socketpair()
    with mine, other:
        poller.watch(mine.fileno(), told.append)
        poller.forget(mine.fileno())
        poller.forget(mine.fileno())
        other.send(b"x")
        await asyncio.sleep(0.01)
    assert told == []


@in_loop
async def test_connection_whose_response_cannot_go_on_is_closed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Sender) -> None:
        raise KeyError("surprise")

    async with listening(lambda frame, peer: [bytes(50_000_000)]) as listener:
        async with await connect(listener) as client:
            client.writer.write(framed(b"much"))
            await client.reader.readexactly(1)
            monkeypatch.setattr(Sender, "push", fail)
            await client.reader.read(-1)  # to the end, which comes too early
        assert listener.num_connections == 0
    assert "KeyError: 'surprise'" in caplog.text


def test_listener_in_another_loop_says_what_it_needs() -> None:
    async def bind() -> None:
        limits = Limits(
            request_max_bytes=1000, max_idle_ms=-1, max_connections=1, max_connections_per_ip=1
        )
        listener = Listener(LOCAL, limits, echo)
        try:
            listener.bind()
        finally:
            listener._socket.close()

    with pytest.raises(RuntimeError, match="BrokerLoop"):
        asyncio.run(bind())
