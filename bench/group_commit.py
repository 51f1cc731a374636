"""Produce with `flush.messages=1`: every acknowledged batch is on the medium; beside Kafka.

Pre-encoded frames of one batch of 1 KB (`bench raw`), with acks=1, over few and over many
connections, to one partition and to six. Kafka flushes inside of every append; our broker flushes
once for all appends that wait (group commit), so the more connections produce, the larger the
ratio. `KCTL_RAW_SECONDS` says how long a round takes.
"""

import selectors
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from bench.raw import KB, ROUNDS, SECONDS, Shape, _prepare, _Sender, _turn
from bench.report import Comparison
from bench.servers import MeasuredBroker, both_brokers

GOAL: Final = 3


class Load(NamedTuple):
    """How many connections produce, to how many partitions with each request."""

    num_connections: int
    num_partitions: int
    goal: float | None


LOADS: Final = (Load(1, 1, None), Load(16, 1, GOAL), Load(64, 1, GOAL), Load(16, 6, GOAL))


def run() -> Iterator[Comparison]:
    """One row per load: the best of three rounds of each broker, in turns."""
    with both_brokers(log_flush_interval_messages=1) as brokers:
        for load in LOADS:
            shape = Shape("produce", KB, load.num_partitions, 0)
            frames = [_prepare(broker, shape) for broker in brokers]
            best = [0.0, 0.0]
            for _ in range(ROUNDS):
                for index, broker in enumerate(brokers):
                    rate = _measure(broker, frames[index], load.num_connections)
                    best[index] = max(best[index], rate)
            ours, theirs = best
            name = f"{load.num_connections} connections, {load.num_partitions} x 1 KB"
            yield Comparison(name, ours, theirs, "Kafka", "req/s", load.goal, more_is_better=True)


def _measure(broker: MeasuredBroker, frame: bytes, num_connections: int) -> float:
    """Requests per second."""
    senders = [_Sender(broker.bootstrap_servers, frame) for _ in range(num_connections)]
    with selectors.DefaultSelector() as selector:
        for sender in senders:
            selector.register(sender.socket, selectors.EVENT_READ, sender)
            sender.start()
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            _turn(selector)
        spent = time.perf_counter() - start
        answered = sum(sender.answered for sender in senders)
        for sender in senders:
            sender.socket.close()
    return answered / spent
