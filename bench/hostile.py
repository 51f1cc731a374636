"""The longest wait of a normal client during one hostile request: our broker and Apache Kafka.

For every array of every API one request of up to 10 MB is sent; `KCTL_HOSTILE_MB=100` for larger
ones. The rows are the requests with the longest waits, and our peak memory per byte of the request.
"""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.report import Comparison
from bench.servers import MeasuredBroker, both_brokers
from broker.api.table import TABLE
from broker.protocol.api_keys import ApiKey
from broker.protocol.compiler import MAX_ELEMENTS
from tests.fuzz.run import InnocentClient
from tests.support.hostile_requests import (
    ENDS_THE_BROKER,
    Hostile,
    hostile_requests,
    tagged_fields,
)

REQUEST_BYTES = int(float(os.environ.get("KCTL_HOSTILE_MB", "10")) * 1_000_000)
SMALLEST_BYTES = 100_000
TIMEOUT_S = 120
BETWEEN_BROKERS = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.ALTER_PARTITION,
    }
)
"""Sent last, and not to Kafka: they change what a broker believes about its cluster."""
SHOWN = 20
LIMIT_S = 0.1


class Seen(NamedTuple):
    """What one request did."""

    wait_s: float
    peak_mb: float
    size_mb: float
    """Of the request."""


def run() -> Iterator[Comparison]:
    """The worst waits first; a wait of Kafka below a millisecond counts as one."""
    seen: list[tuple[Hostile, Seen, Seen | None]] = []
    with both_brokers() as (ours, theirs):
        for one in _requests():
            is_for_kafka = one.api_key not in BETWEEN_BROKERS
            kafka = measure(theirs, one) if is_for_kafka else None
            seen.append((one._replace(frame=one.frame[:0]), measure(ours, one), kafka))
    seen.sort(key=lambda row: row[1].wait_s, reverse=True)
    for one, mine, kafka in seen[:SHOWN]:
        wait, peer = (kafka.wait_s, "Kafka") if kafka is not None else (LIMIT_S, "the limit")
        name = f"wait beside {one}"
        yield Comparison(name, mine.wait_s * 1000, max(wait, 0.001) * 1000, peer, "ms")
    worst = max(mine.wait_s for _, mine, _ in seen)
    yield Comparison("worst wait", worst * 1000, LIMIT_S * 1000, "the limit", "ms", goal=1)
    one, mine, _ = max(seen, key=lambda row: row[1].peak_mb / row[1].size_mb)
    yield Comparison(f"memory for {one}", mine.peak_mb, mine.size_mb, "its size", "MB", goal=20)


def _requests() -> Iterator[Hostile]:
    """One at a time: a hundred requests of 100 MB do not fit into memory."""
    yield tagged_fields(1_000_000)
    for key in sorted(TABLE, key=lambda key: (key in BETWEEN_BROKERS, key)):
        if key not in ENDS_THE_BROKER:
            for one in hostile_requests(ApiKey(key), REQUEST_BYTES, MAX_ELEMENTS - 100):
                if len(one.frame) > SMALLEST_BYTES:
                    yield one


def measure(broker: MeasuredBroker, hostile: Hostile) -> Seen:
    """Send one request while another client requests metadata every 20 ms."""
    before_mb = broker.resident_mb()
    broker.reset_peak()
    innocent = InnocentClient(broker.bootstrap_servers)
    innocent.start()
    time.sleep(0.1)
    with contextlib.suppress(OSError):
        _exchange(broker.bootstrap_servers, hostile.frame)
    time.sleep(0.1)
    innocent.stop()
    size_mb = len(hostile.frame) / 2**20
    return Seen(innocent.worst_wait_s, broker.peak_mb() - before_mb, size_mb)


def _exchange(address: str, frame: bytes) -> None:
    """Send a frame and read its response to the end, if there is one."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as connection:
        connection.sendall(frame)
        with connection.makefile("rb") as stream:
            left = int.from_bytes(stream.read(4), "big")
            while left > 0 and (data := stream.read(min(left, 1 << 20))):
                left -= len(data)
