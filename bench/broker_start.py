"""Start-up, and creating a topic with 2,000 partitions: our broker and Apache Kafka."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from bench.report import Comparison
from bench.servers import until_metadata_is_answered
from broker.net.client import Client
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.metadata import MetadataRequest
from tests.support.broker import RunningBroker, running_broker
from tests.support.real_kafka import RealKafka, running_kafka

PARTITIONS = 2000


def run() -> Iterator[Comparison]:
    """Start on an empty directory, create the topic, stop, and start again on its partitions."""
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory:
        ours, theirs = Path(directory, "ours"), Path(directory, "theirs")
        ours.mkdir()
        theirs.mkdir()
        with _ours(ours) as broker:  # brings Python's files into the page cache
            asyncio.run(_answers(broker.bootstrap_servers))
        my_start, my_create = _start_and_create(_ours(ours))
        kafka_start, kafka_create = _start_and_create(running_kafka(theirs))
        yield Comparison("start, empty", my_start, kafka_start, "Kafka", "s", goal=0.2)
        yield Comparison(
            "create 2,000 partitions", my_create, kafka_create, "Kafka", "s", goal=0.25
        )
        my_restart = _start(_ours(ours))
        kafka_restart = _start(running_kafka(theirs))
        yield Comparison(
            "start, 2,000 partitions", my_restart, kafka_restart, "Kafka", "s", goal=0.4
        )


def _ours(directory: Path) -> AbstractContextManager[RunningBroker]:
    return running_broker(directory)


def _start(server: AbstractContextManager[RunningBroker | RealKafka]) -> float:
    since = time.monotonic()
    with server as running:
        return asyncio.run(until_metadata_is_answered(running.bootstrap_servers, since))


def _start_and_create(
    server: AbstractContextManager[RunningBroker | RealKafka],
) -> tuple[float, float]:
    since = time.monotonic()
    with server as running:
        started = asyncio.run(until_metadata_is_answered(running.bootstrap_servers, since))
        return started, asyncio.run(_create(running.bootstrap_servers))


async def _answers(bootstrap_servers: str) -> None:
    async with Client(bootstrap_servers) as client:
        await client.send(MetadataRequest(topics=None))


async def _create(bootstrap_servers: str) -> float:
    """Seconds until the topic exists and every partition has a leader."""
    topic = CreatableTopic(name="many", num_partitions=PARTITIONS, replication_factor=1)
    async with Client(bootstrap_servers, request_timeout_s=300) as client:
        since = time.monotonic()
        await client.send_to_controller(CreateTopicsRequest(topics=[topic], timeout_ms=300_000))
        while True:
            described = await client.refresh_metadata(["many"])
            partitions = described.topics[0].partitions
            if len(partitions) == PARTITIONS and all(p.leader_id >= 0 for p in partitions):
                return time.monotonic() - since
            await asyncio.sleep(0.02)
