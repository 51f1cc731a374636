"""What the metrics of a broker cost: on the produce path, and while they are scraped.

A produce request is counted in opcodes of the interpreter, which are the same on a loaded machine,
and measured in CPU time. A scrape of 1,000 partitions is timed from a client's side, the pauses of
the event loop in the broker.
"""

import asyncio
import math
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.request import urlopen

from bench.report import Comparison
from broker.__main__ import freeze_objects, tune_interpreter
from broker.config import parse_config
from broker.net.connection import Peer
from broker.net.poller import BrokerLoop
from broker.server import Server
from tests.api.requests import produce_request
from tests.log.support import batch
from tests.support.wire import request_frame

NUM_PARTITIONS = 1_000
SCRAPES = 20
RECORDS_PER_BATCH = 1_000
"""With 100 bytes each, as a producer under load batches them."""
WARM_UP_BATCHES, BATCHES, REQUESTS_PER_BATCH = 20, 60, 500
REQUESTS_COUNTED = 64
COST_GOAL, SCRAPE_GOAL_MS, PAUSE_GOAL_MS = 1.01, 20.0, 5.0
_PEER = Peer("127.0.0.1", 50_000, "PLAINTEXT")
_TICK_S = 0.001


def run() -> Iterator[Comparison]:
    """A produce request with metrics and without; a scrape; pauses while scraping."""
    tune_interpreter()
    what = f"produce of {RECORDS_PER_BATCH:,} records, metrics on"
    (on, on_us), (off, off_us) = _in_brokers(_compare_produce, "http://127.0.0.1:0", "")
    yield Comparison(what, on, off, "metrics off", "opcodes")
    yield Comparison(what, on_us, off_us, "metrics off", "µs CPU", COST_GOAL)
    scrape_ms, cpu_ms, pause_ms, quiet_ms = _in_brokers(_scrape, "http://127.0.0.1:0")
    what = f"scrape, {NUM_PARTITIONS:,} partitions"
    yield Comparison(what, scrape_ms, SCRAPE_GOAL_MS, "goal", "ms", 1.0)
    yield Comparison(f"{what}, CPU time", cpu_ms, SCRAPE_GOAL_MS, "goal", "ms", 1.0)
    what = "longest pause of the loop meanwhile, median of scrapes"
    yield Comparison(what, pause_ms, PAUSE_GOAL_MS, "goal", "ms", 1.0)
    yield Comparison(what, pause_ms, quiet_ms, "without a scrape", "ms")


def _in_brokers(work: Any, *admin: str) -> Any:
    """Run `work` with brokers in one event loop, one for each address of an admin port."""

    async def run_servers() -> Any:
        async with AsyncExitStack() as stack:
            servers = []
            for address in admin:
                directory = stack.enter_context(tempfile.TemporaryDirectory())
                settings = {
                    "listeners": "PLAINTEXT://127.0.0.1:0",
                    "log.dirs": str(Path(directory) / "data"),
                } | ({"admin.listeners": address} if address else {})
                server = Server(parse_config(settings))
                await server.start()
                stack.push_async_callback(server.stop)
                servers.append(server)
            return await work(*servers)

    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        return runner.run(run_servers())


async def _compare_produce(*servers: Server) -> list[tuple[float, float]]:
    """Opcodes and microseconds of CPU time of one produce request on each broker.

    In turns, because the speed of a shared machine changes. CPU time is that of the event loop for
    the whole request, from the socket to the socket.
    """
    records = batch(*("x" * 100 for _ in range(RECORDS_PER_BATCH)))
    frame = request_frame(produce_request("t", records, acks=1), 9)
    best = [math.inf for _ in servers]
    clients = []
    for server in servers:
        await server._services.auto_creation.auto_create("t")
        clients.append(socket.create_connection(("127.0.0.1", _port(server))))
    for turn in range(WARM_UP_BATCHES + BATCHES):
        for number, client in enumerate(clients):
            began_s = time.thread_time()
            await asyncio.to_thread(_produce, client, frame)
            spent_s = time.thread_time() - began_s
            if turn >= WARM_UP_BATCHES:
                best[number] = min(best[number], spent_s / REQUESTS_PER_BATCH)
    counted = [_opcodes(server, memoryview(frame)) for server in servers]
    for client in clients:
        client.close()
    return [(count, s * 1_000_000) for count, s in zip(counted, best, strict=True)]


def _port(server: Server) -> int:
    (listener,) = server.listeners
    return listener.address.port


def _produce(client: socket.socket, frame: bytes) -> None:
    message = len(frame).to_bytes(4) + frame
    for _ in range(REQUESTS_PER_BATCH):
        client.sendall(message)
        size = int.from_bytes(client.recv(4, socket.MSG_WAITALL))
        client.recv(size, socket.MSG_WAITALL)


def _opcodes(server: Server, frame: memoryview) -> float:
    """Average number of interpreter opcodes per request, over REQUESTS_COUNTED requests."""
    count = 0

    def trace(called: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        called.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        for _ in range(REQUESTS_COUNTED):
            server._dispatch(frame, _PEER)
    finally:
        sys.settrace(None)
    return count / REQUESTS_COUNTED


async def _scrape(server: Server) -> tuple[float, float, float, float]:
    """Median times of a scrape and of its CPU, and the longest pauses of the loop.

    The pause reported is the median of the longest pause during each scrape: on a shared machine
    the longest of all is caused by the operating system. The last value is the same without a
    scrape.
    """
    creation = server._services.auto_creation
    for number in range(NUM_PARTITIONS):
        await creation.auto_create(f"topic-{number}")
    freeze_objects()
    assert server._admin is not None
    admin = server._admin._server
    pauses_s: list[float] = []
    is_over = False

    async def tick() -> None:
        while not is_over:
            began_s = time.perf_counter()
            await asyncio.sleep(_TICK_S)
            pauses_s.append(time.perf_counter() - began_s - _TICK_S)

    def scrape() -> None:
        with urlopen(f"{admin.url}/metrics") as response:  # noqa: S310
            response.read()

    def in_thread() -> float:
        began_s = time.thread_time()
        admin._metrics({}, "")
        return time.thread_time() - began_s

    async def longest_pause(work: Any) -> float:
        pauses_s.clear()
        await asyncio.to_thread(work)
        await asyncio.sleep(2 * _TICK_S)
        return max(pauses_s)

    ticking = asyncio.ensure_future(tick())
    times_s, during, without = [], [], []
    for _ in range(SCRAPES):
        began_s = time.perf_counter()
        during.append(await longest_pause(scrape))
        times_s.append(time.perf_counter() - began_s - 2 * _TICK_S)
        without.append(await longest_pause(lambda: time.sleep(0.02)))
    is_over = True
    await ticking
    cpu_s = [await asyncio.to_thread(in_thread) for _ in range(SCRAPES)]
    found = (times_s, cpu_s, during, without)
    return tuple(statistics.median(values) * 1000 for values in found)  # type: ignore[return-value]
