"""10,000 partitions: creation, kill -9 and the start after it, on our broker and Apache Kafka.

Each partition has one batch of records. After kill -9 every one of them must be recovered. The time
ends when a client sees a leader for each. `KCTL_PARTITIONS` for another number. CPU time is that of
the new process up to then; it hardly depends on what else runs on the machine.
"""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from bench.report import Comparison
from bench.servers import MeasuredBroker, kafka_pid
from broker.net.client import Client
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.log.poison import batch, records
from tests.support.broker import running_broker
from tests.support.real_kafka import joined_kafka, running_kafka
from tests.support.wire import WireClient

PARTITIONS = int(os.environ.get("KCTL_PARTITIONS", "10000"))
PER_REQUEST = 500
GOAL_S = 15
SESSION_TIMEOUT_S = 6
TOPIC = "many"


class Seen(NamedTuple):
    """What one broker took."""

    create_s: float
    start_s: float
    start_cpu_s: float
    memory_mb: float


def run() -> Iterator[Comparison]:
    """The start is compared with Kafka's and with the goal."""
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory:
        ours, theirs = _ours(Path(directory, "ours")), _kafkas(Path(directory, "theirs"))
    name = f"{PARTITIONS:,} partitions"
    yield Comparison(f"create {name}", ours.create_s, theirs.create_s, "Kafka", "s")
    yield Comparison(f"{name}, start after kill -9", ours.start_s, theirs.start_s, "Kafka", "s")
    yield Comparison(
        f"{name}, start after kill -9, CPU", ours.start_cpu_s, theirs.start_cpu_s, "Kafka", "s"
    )
    yield Comparison(f"{name}, start after kill -9", ours.start_s, GOAL_S, "the limit", "s", goal=1)
    yield Comparison(f"{name}, memory", ours.memory_mb, theirs.memory_mb, "Kafka", "MB")


def _ours(directory: Path) -> Seen:
    directory.mkdir()
    with running_broker(directory, broker_id=1) as broker:
        create_s = _fill(broker.bootstrap_servers)
        os.kill(broker.server.process.pid, signal.SIGKILL)
    since = time.monotonic()
    with running_broker(directory, broker_id=1) as broker:
        measured = MeasuredBroker(broker.bootstrap_servers, broker.server.process.pid)
        return _started(measured, create_s, since)


def _kafkas(directory: Path) -> Seen:
    directory.mkdir()
    settings = {"zookeeper.session.timeout.ms": SESSION_TIMEOUT_S * 1000}
    with running_kafka(directory, settings=settings) as kafka:
        create_s = _fill(kafka.bootstrap_servers)
        os.kill(kafka_pid(directory), signal.SIGKILL)
        time.sleep(SESSION_TIMEOUT_S + 2)  # Kafka does not start while its old session lives
        since = time.monotonic()
        again: AbstractContextManager[str] = joined_kafka(directory, kafka.zookeeper, 1, settings)
        with again as address:
            return _started(MeasuredBroker(address, kafka_pid(directory)), create_s, since)


def _started(broker: MeasuredBroker, create_s: float, since_s: float) -> Seen:
    asyncio.run(_until_all_have_leaders(broker.bootstrap_servers))
    start_s = time.monotonic() - since_s
    return Seen(create_s, start_s, broker.cpu_seconds(), broker.resident_mb())


def _fill(address: str) -> float:
    """Create the topic and append a batch to each partition; seconds until all have leaders."""
    since = time.monotonic()
    asyncio.run(_create(address))
    create_s = time.monotonic() - since
    one = batch(records(3), 3)
    with WireClient(address) as wire:
        wire.socket.settimeout(120)
        for first in range(0, PARTITIONS, PER_REQUEST):
            indexes = range(first, min(first + PER_REQUEST, PARTITIONS))
            data = [PartitionProduceData(index=index, records=one) for index in indexes]
            topic = TopicProduceData(name=TOPIC, partition_data=data)
            request = ProduceRequest(
                transactional_id=None, acks=1, timeout_ms=60_000, topic_data=[topic]
            )
            response = wire.ask(request, 9)
            codes = {part.error_code for part in response.responses[0].partition_responses}
            assert codes == {0}, codes
    return create_s


async def _create(address: str) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    async with Client(address, request_timeout_s=300) as client:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=300_000)
        (made,) = (await client.send_to_controller(request)).topics
        assert not made.error_code, made
    await _until_all_have_leaders(address)


async def _until_all_have_leaders(address: str) -> None:
    async with Client(address, request_timeout_s=300) as client:
        while True:
            described = await client.refresh_metadata([TOPIC])
            partitions = described.topics[0].partitions
            if len(partitions) == PARTITIONS and all(p.leader_id >= 0 for p in partitions):
                return
            await asyncio.sleep(0.1)
