"""What the metrics of a broker cost: on the produce path, and while they are scraped.

The produce path is counted in opcodes of the interpreter, not timed: the result is the same on a
loaded machine. A scrape of 1,000 partitions is timed from a client's side, the pauses of the event
loop in the broker.
"""

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.request import urlopen

from bench.report import Comparison
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
"""Of 100 bytes: what a producer under load sends."""
ROUNDS, BATCHES, REQUESTS_PER_BATCH = 3, 15, 100
COST_GOAL, SCRAPE_GOAL_MS, PAUSE_GOAL_MS = 1.01, 20.0, 5.0
_PEER = Peer("127.0.0.1", 50_000, "PLAINTEXT")
_TICK_S = 0.001


def run() -> Iterator[Comparison]:
    """Opcodes of one produce with metrics and without; a scrape; pauses while scraping."""
    ports = ("", "http://127.0.0.1:0")
    off, on = (_in_broker(port, _count_produce)[0] for port in ports)
    what = f"produce of {RECORDS_PER_BATCH:,} records, metrics on"
    yield Comparison(what, on, off, "metrics off", "opcodes")
    times = [[_in_broker(port, _time_produce)[0] for port in ports] for _ in range(ROUNDS)]
    off_us, on_us = (min(one[at] for one in times) for at in (0, 1))
    yield Comparison(what, on_us, off_us, "metrics off", "µs CPU", COST_GOAL)
    scrape_ms, pause_ms = _in_broker("http://127.0.0.1:0", _scrape)
    yield Comparison(
        f"scrape, {NUM_PARTITIONS:,} partitions", scrape_ms, SCRAPE_GOAL_MS, "goal", "ms", 1.0
    )
    yield Comparison(
        "longest pause of the loop meanwhile", pause_ms, PAUSE_GOAL_MS, "goal", "ms", 1.0
    )


def _in_broker(admin: str, work: Any) -> tuple[float, ...]:
    with tempfile.TemporaryDirectory() as directory:
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(Path(directory) / "data"),
        } | ({"admin.listeners": admin} if admin else {})

        async def run_server() -> tuple[float, ...]:
            server = Server(parse_config(settings))
            await server.start()
            try:
                return tuple(await work(server))
            finally:
                await server.stop()

        with asyncio.Runner(loop_factory=BrokerLoop) as runner:
            return runner.run(run_server())


async def _count_produce(server: Server) -> tuple[float]:
    await server._services.auto_creation.auto_create("t")
    records = batch(*("x" * 100 for _ in range(RECORDS_PER_BATCH)))
    frame = memoryview(request_frame(produce_request("t", records, acks=1), 9))
    for _ in range(10):
        server._dispatch(frame, _PEER)
    return (_opcodes(server, frame),)


async def _time_produce(server: Server) -> tuple[float]:
    """CPU time of one produce in microseconds: the least of several batches of requests."""
    await server._services.auto_creation.auto_create("t")
    records = batch(*("x" * 100 for _ in range(RECORDS_PER_BATCH)))
    frame = memoryview(request_frame(produce_request("t", records, acks=1), 9))
    found = []
    for _ in range(BATCHES):
        began_s = time.thread_time()
        for _ in range(REQUESTS_PER_BATCH):
            server._dispatch(frame, _PEER)
        found.append((time.thread_time() - began_s) / REQUESTS_PER_BATCH)
        await asyncio.sleep(0)
    return (min(found) * 1_000_000,)


def _opcodes(server: Server, frame: memoryview) -> int:
    count = 0

    def trace(called: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        called.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        server._dispatch(frame, _PEER)
    finally:
        sys.settrace(None)
    return count


async def _scrape(server: Server) -> tuple[float, float]:
    """The median time of a scrape, and the longest pause of the loop in all of them."""
    creation = server._services.auto_creation
    for number in range(NUM_PARTITIONS):
        await creation.auto_create(f"topic-{number}")
    assert server._admin is not None
    url = f"{server._admin._server.url}/metrics"
    stop = threading.Event()
    pauses_s: list[float] = []

    async def tick() -> None:
        while not stop.is_set():
            began_s = time.perf_counter()
            await asyncio.sleep(_TICK_S)
            pauses_s.append(time.perf_counter() - began_s - _TICK_S)

    def scrape() -> list[float]:
        times_s = []
        for _ in range(SCRAPES):
            began_s = time.perf_counter()
            with urlopen(url) as response:  # noqa: S310
                response.read()
            times_s.append(time.perf_counter() - began_s)
            time.sleep(0.05)
        return times_s

    ticking = asyncio.ensure_future(tick())
    times_s = await asyncio.to_thread(scrape)
    stop.set()
    await ticking
    return statistics.median(times_s) * 1000, max(pauses_s) * 1000
