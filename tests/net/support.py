"""Helpers for tests of broker.net: client and broker in one event loop, over real sockets."""

import asyncio
import functools
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, Self

from broker.config import Listener as ListenerAddress
from broker.net.config import SocketServerConfig
from broker.net.connection import Peer, RequestHandler
from broker.net.connection_quotas import ConnectionQuotas
from broker.net.listener import Listener
from broker.net.poller import BrokerLoop

P = ParamSpec("P")

SOON_S = 10.0
"""Timeout for anything that a test waits for, generous for busy machines."""

LOCAL = ListenerAddress("PLAINTEXT", "127.0.0.1", 0)


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test; errors that asyncio would only log fail it."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        errors: list[dict[str, Any]] = []

        async def run_test() -> None:
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context: errors.append(context)
            )
            await test(*args, **kwargs)

        with asyncio.Runner(loop_factory=BrokerLoop) as runner:
            runner.run(run_test())
        assert not errors

    return run


def quotas(**settings: Any) -> ConnectionQuotas:
    """Quotas with these settings, and generous values for the others."""
    generous: dict[str, Any] = {
        "socket_request_max_bytes": 2**20,
        "connections_max_idle_ms": -1,
        "max_connections": 100,
        "max_connections_per_ip": 100,
    }
    return ConnectionQuotas(SocketServerConfig(**(generous | settings)))


@asynccontextmanager
async def listening(
    handle_request: RequestHandler,
    address: ListenerAddress = LOCAL,
    shared: ConnectionQuotas | None = None,
    **settings: Any,
) -> AsyncIterator[Listener]:
    """A listener that is stopped at the end."""
    listener = Listener(address, shared or quotas(**settings), handle_request)
    listener.bind()
    await listener.start()
    try:
        yield listener
    finally:
        async with asyncio.timeout(SOON_S):
            await listener.stop()


def framed(body: bytes) -> bytes:
    """The body, preceded by its size."""
    return len(body).to_bytes(4, "big") + body


def echo(frame: memoryview, peer: Peer) -> list[Any]:
    """A request handler that responds with the request."""
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
        """Close without waiting."""
        self.writer.transport.abort()
        self.writer.close()

    async def ask(self, body: bytes) -> bytes:
        """Send one frame and return the next one received."""
        self.writer.write(framed(body))
        return await self.receive()

    async def receive(self) -> bytes:
        """The next frame."""
        async with asyncio.timeout(SOON_S):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)

    async def is_closed(self) -> bool:
        """Wait until the listener has closed the connection; True if it sent nothing more."""
        async with asyncio.timeout(SOON_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True
            finally:
                self.leave()


async def connect(listener: Listener, source: str = "127.0.0.1") -> RawClient:
    """Connect from a local address."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", listener.address.port, local_addr=(source, 0)
    )
    return RawClient(reader, writer)


async def connect_with_small_buffer(listener: Listener) -> socket.socket:
    """A socket that is not read until the test does, with a small receive buffer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", listener.address.port))
    return client


async def receive_exactly(client: socket.socket, count: int) -> bytes:
    """Receive `count` bytes from a plain socket."""
    received = bytearray()
    async with asyncio.timeout(30):
        while len(received) < count:
            data = await asyncio.get_running_loop().sock_recv(client, 1 << 20)
            assert data, f"closed after {len(received)} bytes of {count}"
            received += data
    return bytes(received)


async def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; checks it every millisecond."""
    async with asyncio.timeout(SOON_S):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.001)
