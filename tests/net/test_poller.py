"""The broker's event loop: callbacks of sockets, and failures of callbacks."""

import asyncio
import socket

import pytest

from broker.net.listener import Listener
from broker.net.poller import READABLE, running_poller
from broker.net.transport import PlainTransport
from tests.net.support import LOCAL, connect, echo, framed, in_loop, listening, quotas, until


@in_loop
async def test_failing_callback_is_logged_and_others_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    poller = running_poller()
    told: list[int] = []
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
async def test_forgotten_socket_gets_no_events() -> None:
    poller = running_poller()
    told: list[int] = []
    mine, other = socket.socketpair()
    with mine, other:
        poller.watch(mine.fileno(), told.append)
        poller.forget(mine.fileno())
        poller.forget(mine.fileno())
        other.send(b"x")
        await asyncio.sleep(0.01)
    assert told == []


@in_loop
async def test_connection_is_closed_if_flushing_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: PlainTransport) -> None:
        raise KeyError("surprise")

    async with listening(lambda frame, peer: [bytes(50_000_000)]) as listener:
        async with await connect(listener) as client:
            client.writer.write(framed(b"much"))
            await client.reader.readexactly(1)
            monkeypatch.setattr(PlainTransport, "flush", fail)
            await client.reader.read(-1)  # to the end, which comes too early
        assert listener.num_connections == 0
    assert "KeyError: 'surprise'" in caplog.text


def test_listener_in_another_loop_names_the_loop_it_needs() -> None:
    async def bind() -> None:
        listener = Listener(LOCAL, quotas(), echo)
        try:
            listener.bind()
        finally:
            listener._socket.close()

    with pytest.raises(RuntimeError, match="BrokerLoop"):
        asyncio.run(bind())
