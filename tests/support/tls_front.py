"""A TLS proxy in front of a plaintext server."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker import running_broker
from tests.support.certificates import Certificate
from tests.support.processes import free_port

CHUNK = 65536


@contextmanager
def running_tls_broker(directory: Path, own: Certificate) -> Iterator[tuple[str, str]]:
    """A broker behind TLS at `localhost`: that address, and its plaintext one."""
    port = free_port()
    address = f"localhost:{port}"
    with (
        running_broker(directory, advertised_listeners=f"PLAINTEXT://{address}") as broker,
        tls_front(directory, own, port, broker.bootstrap_servers),
    ):
        yield address, broker.bootstrap_servers


@contextmanager
def tls_front(directory: Path, own: Certificate, port: int, target: str) -> Iterator[None]:
    """Serve TLS with the certificate `own` on `port`, and pass what comes on to `target`."""
    pem = directory / "front.pem"
    pem.write_text(own.pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        front = _Front(target)
        asyncio.run_coroutine_threadsafe(front.start(context, port), loop).result()
        yield
        asyncio.run_coroutine_threadsafe(front.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Front:
    """The listening socket and the connections through it."""

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, context: ssl.SSLContext, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, ssl=context)

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(self._host, self._port)
        try:
            await asyncio.gather(_pass(reader, inner_writer), _pass(inner_reader, writer))
        finally:
            writer.transport.abort()
            inner_writer.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # the other direction ends with it
    writer.close()
