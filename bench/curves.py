"""Cost of one produce and one fetch as the broker grows: partitions, connections, groups, data.

The cost is the CPU time of the broker per request (1 KB produced, 16 KB fetched, `bench raw`),
which depends less on the machine than the time. A row compares the largest size with the smallest,
for each broker: flat is 1. `KCTL_CURVES=0.1` runs with a tenth of the sizes; `KCTL_CURVES_WRITE=1`
draws the curves in docs/performance.md.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench.load import TIMEOUT_S, TOPIC, _create_topic
from bench.raw import KB, SECONDS, Shape, _framed, _measure, _prepare, _produce
from bench.report import Comparison
from bench.servers import MeasuredBroker, both_brokers
from broker.net.client import Client
from broker.net.file_descriptors import raise_soft_limit
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.wire import WireClient, request_frame

SCALE = float(os.environ.get("KCTL_CURVES", "1"))
GOAL: Final = 1.3
PRODUCE: Final = Shape("produce", KB, 1, 0)
FETCH: Final = Shape("fetch", 16 * KB, 1, 0)
PAGE: Final = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- curves: begin -->", "<!-- curves: end -->"
_BARS: Final = "▁▂▃▄▅▆▇█"


class Point(NamedTuple):
    """CPU microseconds of one request of each broker at one size."""

    size: int
    ours: float
    theirs: float


class Curve(NamedTuple):
    """How a cost changes with a size."""

    what: str
    unit: str
    points: list[Point]


def run() -> Iterator[Comparison]:
    """Two rows per curve: our growth beside the goal, and beside Kafka's."""
    raise_soft_limit()
    curves = [
        curve for measure in (_partitions, _connections, _groups, _data) for curve in measure()
    ]
    for curve in curves:
        first, last = curve.points[0], curve.points[-1]
        name = f"{curve.what}, {first.size:,} to {last.size:,} {curve.unit}"
        growth, kafkas = last.ours / first.ours, last.theirs / first.theirs
        yield Comparison(name, growth, 1.0, "flat", "x", GOAL)
        yield Comparison(name, growth, kafkas, "Kafka", "x")
    if os.environ.get("KCTL_CURVES_WRITE"):
        _write(curves)


def _sizes(*full: int) -> list[int]:
    return sorted({max(1, int(size * SCALE)) for size in full})


def _curves(
    brokers: tuple[MeasuredBroker, MeasuredBroker],
    unit: str,
    sizes: list[int],
    grow: Callable[[MeasuredBroker, int], object],
) -> list[Curve]:
    """Measure both requests on both brokers at each size; `grow` makes them larger."""
    frames = {
        (broker.pid, shape): _prepare(broker, shape)
        for broker in brokers
        for shape in (PRODUCE, FETCH)
    }
    for broker in brokers:  # Kafka's JIT compiler
        for shape in (PRODUCE, FETCH):
            _measure(broker, frames[broker.pid, shape], 2 * SECONDS)
    points: dict[Shape, list[Point]] = {PRODUCE: [], FETCH: []}
    for size in sizes:
        for broker in brokers:
            grow(broker, size)
        for shape, found in points.items():
            ours, theirs = (_cost(broker, frames[broker.pid, shape]) for broker in brokers)
            found.append(Point(size, ours, theirs))
    return [Curve(shape.api, unit, found) for shape, found in points.items()]


def _cost(broker: MeasuredBroker, frame: bytes) -> float:
    """The best of three: other load can only add time."""
    return min(_measure(broker, frame, SECONDS)[1] for _ in range(3))


# --- what grows ---------------------------------------------------------------------------------


def _partitions() -> list[Curve]:
    def grow(broker: MeasuredBroker, size: int) -> None:
        asyncio.run(_create(broker.bootstrap_servers, size))

    with both_brokers() as brokers:
        return _curves(brokers, "partitions", _sizes(10, 1_000, 10_000), grow)


async def _create(address: str, size: int) -> None:
    """One more topic, so that there are about `size` partitions."""
    topic = CreatableTopic(name=f"other-{size}", num_partitions=size, replication_factor=1)
    async with Client(address, request_timeout_s=600) as client:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=600_000)
        await client.send_to_controller(request)
        while True:
            described = await client.refresh_metadata([topic.name])
            partitions = described.topics[0].partitions
            if len(partitions) == size and all(p.leader_id >= 0 for p in partitions):
                return
            await asyncio.sleep(0.1)


def _connections() -> list[Curve]:
    with contextlib.ExitStack() as stack, both_brokers() as brokers:
        opened = {broker.pid: 0 for broker in brokers}

        def grow(broker: MeasuredBroker, size: int) -> None:
            host, _, port = broker.bootstrap_servers.rpartition(":")
            while opened[broker.pid] < size:
                stack.enter_context(socket.create_connection((host, int(port))))
                opened[broker.pid] += 1
            time.sleep(1)  # the brokers accept them

        return _curves(brokers, "connections", _sizes(10, 1_000, 5_000), grow)


def _groups() -> list[Curve]:
    with both_brokers(offsets_topic_num_partitions=4) as brokers:
        for broker in brokers:
            asyncio.run(_create_topic(broker.bootstrap_servers))
        known = {broker.pid: 0 for broker in brokers}

        def grow(broker: MeasuredBroker, size: int) -> None:
            asyncio.run(_commit(broker.bootstrap_servers, range(known[broker.pid], size)))
            known[broker.pid] = size

        return _curves(brokers, "groups", _sizes(1, 1_000, 5_000), grow)


async def _commit(address: str, groups: range) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
    async with Client(address, request_timeout_s=TIMEOUT_S) as client:
        for number in groups:
            request = OffsetCommitRequest(group_id=f"g-{number}", topics=topics)
            await client.send_to_coordinator(f"g-{number}", request)


def _data() -> list[Curve]:
    """Fetches from the middle of a segment that grows; a segment has at most 2 GB."""
    batch = Shape("data", 64 * KB, 1, 0)
    points = []
    with both_brokers(log_segment_bytes=2**31 - 1) as brokers:
        for broker in brokers:
            _prepare(broker, batch)
        num_stored = {broker.pid: 0 for broker in brokers}
        for size in _sizes(1, 100, 1_500):
            costs = []
            for broker in brokers:
                end = 0
                with WireClient(broker.bootstrap_servers) as wire:
                    while num_stored[broker.pid] < size * 1024 * KB // batch.num_bytes:
                        answer = wire.ask(_produce(batch), 9)
                        end = answer.responses[0].partition_responses[0].base_offset
                        num_stored[broker.pid] += 1
                frame = _framed(request_frame(_fetch_from(batch.topic, end // 2), 12))
                costs.append(_cost(broker, frame))
            points.append(Point(size, *costs))
    return [Curve("fetch", "MB in the segment", points)]


def _fetch_from(topic: str, offset: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=16 * KB)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 * 1024 * KB,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


# --- the page -----------------------------------------------------------------------------------


def _write(curves: list[Curve]) -> None:
    """Replace the curves in docs/performance.md."""
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    lines = [
        "",
        "| request | grows | ours, µs | | Kafka, µs | | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for curve in curves:
        ours, theirs = [p.ours for p in curve.points], [p.theirs for p in curve.points]
        sizes = " → ".join(f"{point.size:,}" for point in curve.points)
        lines.append(
            f"| {curve.what} | {sizes} {curve.unit} | {_list(ours)} | {_drawn(ours)} "
            f"| {_list(theirs)} | {_drawn(theirs)} | {ours[-1] / ours[0]:.2f} |"
        )
    PAGE.write_text("\n".join([head + BEGIN, *lines, "", END]) + tail)


def _list(costs: list[float]) -> str:
    return ", ".join(f"{cost:.0f}" for cost in costs)


def _drawn(costs: list[float]) -> str:
    """One bar per cost; the largest possible bar is twice the first cost."""
    top = 2 * costs[0]
    return "".join(_BARS[min(len(_BARS) - 1, int(cost / top * len(_BARS)))] for cost in costs)
