"""Tests of the net room run in one event loop, over real sockets, in both roles at once."""

import asyncio
import functools
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, Self

from broker.config import Listener as ListenerAddress
from broker.net.connection import Answerer, Peer
from broker.net.listener import Limits, Listener
from broker.net.poller import BrokerLoop

P = ParamSpec("P")

SOON_S = 10.0
"""Longer than anything here takes, also on a busy machine."""

LOCAL = ListenerAddress("PLAINTEXT", "127.0.0.1", 0)


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test; what asyncio would only have logged fails it."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        complaints: list[dict[str, Any]] = []

        async def listen_for_complaints() -> None:
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context: complaints.append(context)
            )
            await test(*args, **kwargs)

        with asyncio.Runner(loop_factory=BrokerLoop) as runner:
            runner.run(listen_for_complaints())
        assert not complaints

    return run


def limited(**limits: Any) -> Limits:
    """Limits of these, and otherwise generous ones."""
    unlimited: dict[str, Any] = {
        "request_max_bytes": 2**20,
        "max_idle_ms": -1,
        "max_connections": 100,
        "max_connections_per_ip": 100,
    }
    return Limits(**(unlimited | limits))


@asynccontextmanager
async def listening(
    answerer: Answerer,
    address: ListenerAddress = LOCAL,
    shared: Limits | None = None,
    **limits: Any,
) -> AsyncIterator[Listener]:
    """A listener that is stopped at the end."""
    listener = Listener(address, shared or limited(**limits), answerer)
    listener.bind()
    await listener.start()
    try:
        yield listener
    finally:
        async with asyncio.timeout(SOON_S):
            await listener.stop()


def framed(body: bytes) -> bytes:
    """The body with its size in front."""
    return len(body).to_bytes(4, "big") + body


def echo(frame: memoryview, peer: Peer) -> list[Any]:
    """An answerer that says the same again."""
    return [bytearray(framed(bytes(frame)))]


class RawClient:
    """Bytes out, frames in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Close without further words."""
        self.writer.transport.abort()
        self.writer.close()

    async def ask(self, body: bytes) -> bytes:
        """Send one frame and give the next one that comes."""
        self.writer.write(framed(body))
        return await self.receive()

    async def receive(self) -> bytes:
        """The next frame."""
        async with asyncio.timeout(SOON_S):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)

    async def is_closed(self) -> bool:
        """True once the other side has closed without sending more; fails if it does not."""
        async with asyncio.timeout(SOON_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True
            finally:
                self.leave()


async def connect(listener: Listener, source: str = "127.0.0.1") -> RawClient:
    """Connect from an address of this machine."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", listener.address.port, local_addr=(source, 0)
    )
    return RawClient(reader, writer)


async def connect_with_small_buffer(listener: Listener) -> socket.socket:
    """A socket that nobody reads from until the test does."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", listener.address.port))
    return client


async def receive_exactly(client: socket.socket, count: int) -> bytes:
    """So many bytes from a plain socket."""
    received = bytearray()
    async with asyncio.timeout(30):
        while len(received) < count:
            data = await asyncio.get_running_loop().sock_recv(client, 1 << 20)
            assert data, f"closed after {len(received)} bytes of {count}"
            received += data
    return bytes(received)


async def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; looks between the steps of the loop."""
    async with asyncio.timeout(SOON_S):
        while not condition():  # noqa: ASYNC110  # of things that tell nobody
            await asyncio.sleep(0.001)
