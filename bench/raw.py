"""Raw requests: pre-encoded Produce and Fetch frames on one core, and the same on Apache Kafka.

No client library, so that what is measured is the broker: four connections send the same frame
again and again, five at a time each. Both brokers are pinned to the same core, the generator to the
other, and they take turns. Every row is given twice: requests per second, and the CPU time of the
broker per request, which depends less on what else the machine does. The best round of each side
counts.

Where there is a C compiler, produce rows of one partition have a third: beside `produce_limit.c`,
a server that only reads frames, computes CRC-32C and writes them to a file. No broker can be
faster, so this says how much could be gained at all.

`KCTL_RAW_WARM_SECONDS` says how long Kafka is warmed (its JIT needs a minute or more of each load,
or the ratio flatters us), `KCTL_RAW_SECONDS` how long a round takes, `KCTL_RAW_ROWS` selects rows
whose names contain one of these texts, separated by commas.
"""

import os
import selectors
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from bench.report import Comparison
from bench.servers import MeasuredBroker, both_brokers
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from broker.records.builder import build_batch
from tests.support.wire import WireClient, request_frame

KB: Final = 1024
CONNECTIONS: Final = 4
IN_FLIGHT: Final = 5
ROUNDS: Final = 3
SECONDS = float(os.environ.get("KCTL_RAW_SECONDS", "3"))
WARM_SECONDS = float(os.environ.get("KCTL_RAW_WARM_SECONDS", "20"))
ROWS = os.environ.get("KCTL_RAW_ROWS", "")
BROKER_CORE, GENERATOR_CORE = 0, 1
PRODUCE_VERSION, FETCH_VERSION = 9, 12
STORED_BYTES: Final = 48 * 1024 * KB
"""Maximum bytes stored in each partition of a fetched topic."""
_LENGTH = Struct(">i")


class Shape(NamedTuple):
    """A kind of request: its size per partition, and how many partitions it names."""

    api: str
    num_bytes: int
    num_partitions: int
    goal: float
    """The ratio of requests per second to reach."""
    share: float | None = None
    """The share of the C limit to reach; None if it is not compared."""

    def __str__(self) -> str:
        size = f"{self.num_bytes // KB} KB" if self.num_bytes < 1024 * KB else "1 MB"
        return f"{self.api} {self.num_partitions} x {size}"

    @property
    def topic(self) -> str:
        """The topic of this shape, so that shapes do not share segments."""
        return f"{self.api}-{self.num_partitions}-{self.num_bytes}"


SHAPES: Final = (
    Shape("produce", KB, 1, 1.2, 0.4),
    Shape("produce", 16 * KB, 1, 1.2, 0.6),
    Shape("produce", 64 * KB, 1, 1.2, 0.9),
    Shape("produce", 1000 * KB, 1, 1.5, 1.0),
    Shape("produce", KB, 6, 1.2),
    Shape("produce", KB, 50, 1.2),
    Shape("fetch", 16 * KB, 1, 1.2),
    Shape("fetch", 64 * KB, 6, 1.2),
    Shape("fetch", 1024 * KB, 6, 1.5),
    Shape("fetch", 16 * KB, 50, 1.2),
)


@dataclass
class Best:
    """The best figures of one broker over all rounds."""

    per_second: float = 0.0
    cpu_us: float = float("inf")


def run() -> Iterator[Comparison]:
    """Two rows per shape."""
    wanted = [text for text in ROWS.split(",") if text]
    shapes = [s for s in SHAPES if not wanted or any(text in str(s) for text in wanted)]
    with both_brokers(log_retention_check_interval_ms=10_000) as (ours, theirs):
        for broker in (ours, theirs):
            _pin(broker)
        for shape in shapes:
            yield from _compare(shape, ours, theirs)


def _compare(shape: Shape, ours: MeasuredBroker, theirs: MeasuredBroker) -> Iterator[Comparison]:
    frames = {broker.pid: _prepare(broker, shape) for broker in (ours, theirs)}
    best = {broker.pid: Best() for broker in (ours, theirs)}
    _measure(theirs, frames[theirs.pid], WARM_SECONDS)
    for _ in range(ROUNDS):
        for broker in (ours, theirs):
            per_second, cpu_us = _measure(broker, frames[broker.pid], SECONDS)
            found = best[broker.pid]
            found.per_second = max(found.per_second, per_second)
            found.cpu_us = min(found.cpu_us, cpu_us)
    mine, kafka = best[ours.pid], best[theirs.pid]
    name = str(shape)
    yield Comparison(
        name, mine.per_second, kafka.per_second, "Kafka", "req/s", shape.goal, more_is_better=True
    )
    yield Comparison(f"{name}, CPU", mine.cpu_us, kafka.cpu_us, "Kafka", "µs")
    compiler = shutil.which("cc")
    if shape.share is not None and compiler is not None:
        yield _compare_with_limit(shape, ours, frames[ours.pid], compiler)


def _compare_with_limit(
    shape: Shape, ours: MeasuredBroker, frame: bytes, compiler: str
) -> Comparison:
    """Requests per second beside the C server, in turns; the best round of each."""
    mine = limit = 0.0
    with _limit_server(compiler) as server:
        _pin(server)
        for _ in range(ROUNDS):
            mine = max(mine, _measure(ours, frame, SECONDS)[0])
            limit = max(limit, _measure(server, frame, SECONDS)[0])
    return Comparison(
        f"{shape}, C limit", mine, limit, "C server", "req/s", shape.share, more_is_better=True
    )


@contextmanager
def _limit_server(compiler: str) -> Iterator[MeasuredBroker]:
    with tempfile.TemporaryDirectory(prefix="kctl-limit-") as directory:
        program = Path(directory, "produce_limit")
        source = Path(__file__).with_name("produce_limit.c")
        subprocess.run([compiler, "-O2", "-o", program, source], check=True)
        command = [program, Path(directory, "frames")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                port = process.stdout.readline().strip()
                yield MeasuredBroker(f"127.0.0.1:{port}", process.pid)
            finally:
                process.kill()


def _pin(broker: MeasuredBroker) -> None:
    """All threads of the broker on its core, and this process on the other."""
    command = ["taskset", "--all-tasks", "--cpu-list", "--pid", str(BROKER_CORE), str(broker.pid)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    os.sched_setaffinity(0, {GENERATOR_CORE})


# --- requests -------------------------------------------------------------------------------------


def _prepare(broker: MeasuredBroker, shape: Shape) -> bytes:
    """Create the topic, fill it if it is fetched, and return the frame to send."""
    with closing(_Wire(broker.bootstrap_servers)) as wire:
        wire.create(shape)
        if shape.api == "produce":
            return _framed(request_frame(_produce(shape), PRODUCE_VERSION))
        wire.fill(shape)
    return _framed(request_frame(_fetch(shape), FETCH_VERSION))


def _framed(request: bytes) -> bytes:
    return _LENGTH.pack(len(request)) + request


class _Wire:
    """A connection for preparing topics."""

    def __init__(self, address: str) -> None:
        self._client = WireClient(address)

    def close(self) -> None:
        self._client.__exit__(None, None, None)

    def create(self, shape: Shape) -> None:
        """Create the topic and wait until all its partitions have a leader."""
        topic = CreatableTopic(
            name=shape.topic,
            num_partitions=shape.num_partitions,
            replication_factor=1,
        )
        self._client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=shape.topic)], allow_auto_topic_creation=False
        )
        while any(
            partition.leader_id < 0 or topic.error_code
            for topic in self._client.ask(asked, 8).topics
            for partition in topic.partitions
        ):
            time.sleep(0.05)

    def fill(self, shape: Shape) -> None:
        """Write twice what one fetch returns, in batches of the usual 16 KB."""
        batch = shape._replace(num_bytes=16 * KB)
        request = _produce(batch, topic=shape.topic)
        rounds = min(2 * shape.num_bytes, STORED_BYTES) // batch.num_bytes + 1
        for _ in range(rounds):
            response: ProduceResponse = self._client.ask(request, PRODUCE_VERSION)
            partitions = response.responses[0].partition_responses
            assert not any(partition.error_code for partition in partitions)


def _produce(shape: Shape, topic: str | None = None) -> ProduceRequest:
    return ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=topic or shape.topic,
                partition_data=[
                    PartitionProduceData(index=index, records=memoryview(_batch(shape.num_bytes)))
                    for index in range(shape.num_partitions)
                ],
            )
        ],
    )


def _batch(num_bytes: int) -> bytes:
    """One batch of about this size, with records of 100 bytes or, if it is small, of 10."""
    value = b"x" * (10 if num_bytes <= KB else 100)
    count = max(1, (num_bytes - 61) // (len(value) + 10))
    now_ms = int(time.time() * 1000)
    return bytes(build_batch([(index, now_ms, None, value, ()) for index in range(count)]))


def _fetch(shape: Shape) -> FetchRequest:
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 * 1024 * KB,
        session_id=0,
        session_epoch=-1,  # no session: as franz-go at old offsets, and the most expensive form
        topics=[
            FetchTopic(
                topic=shape.topic,
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=0,
                        partition_max_bytes=shape.num_bytes,
                    )
                    for index in range(shape.num_partitions)
                ],
            )
        ],
    )


# --- the generator --------------------------------------------------------------------------------


class _Sender:
    """One connection that keeps IN_FLIGHT requests with its broker."""

    def __init__(self, address: str, frame: bytes) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frame = frame
        self._buffer = bytearray(1 << 20)
        self._head = b""
        self._missing = 0
        """Bytes of the present response that have not arrived."""
        self.answered = 0

    def start(self) -> None:
        for _ in range(IN_FLIGHT):
            self.socket.sendall(self._frame)

    def receive(self) -> None:
        """Count the responses that are here, and send a new request for each."""
        count = self.socket.recv_into(self._buffer)
        assert count, "the broker closed the connection"
        done = self._count(memoryview(self._buffer)[:count])
        self.answered += done
        if done:
            self.socket.sendall(self._frame * done)

    def _count(self, data: memoryview) -> int:
        done = 0
        while data:
            if self._missing:
                taken = min(self._missing, len(data))
                self._missing -= taken
                data = data[taken:]
                done += not self._missing
            else:
                needed = 4 - len(self._head)
                self._head += bytes(data[:needed])
                data = data[needed:]
                if len(self._head) == 4:
                    self._missing = _LENGTH.unpack(self._head)[0]
                    self._head = b""
        return done


def _measure(broker: MeasuredBroker, frame: bytes, seconds: float) -> tuple[float, float]:
    """Requests per second, and the broker's CPU time per request in microseconds."""
    senders = [_Sender(broker.bootstrap_servers, frame) for _ in range(CONNECTIONS)]
    with selectors.DefaultSelector() as selector:
        for sender in senders:
            selector.register(sender.socket, selectors.EVENT_READ, sender)
            sender.start()
        cpu, start = broker.cpu_seconds(), time.perf_counter()
        while time.perf_counter() - start < seconds:
            _turn(selector)
        spent = time.perf_counter() - start
        answered = sum(sender.answered for sender in senders)
        cpu = broker.cpu_seconds() - cpu
        for sender in senders:
            sender.socket.close()
    return answered / spent, cpu / max(answered, 1) * 1_000_000


def _turn(selector: selectors.BaseSelector) -> None:
    for key, _ in selector.select(1.0):
        sender: _Sender = key.data
        sender.receive()
