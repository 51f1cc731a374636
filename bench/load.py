"""Many connections, groups, consumers and producer ids: our broker and Apache Kafka.

`KCTL_LOAD=0.1` runs with a tenth of the numbers. Times are those of a client, so they depend on
what else runs on the machine; memory and the CPU time of the broker do not.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench.rebalances import rebalance
from bench.report import Comparison
from bench.servers import MeasuredBroker, both_brokers
from broker.net.client import Client
from broker.net.file_descriptors import raise_soft_limit
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.log.poison import batch, records

SCALE = float(os.environ.get("KCTL_LOAD", "1"))
CONNECTIONS = int(5_000 * SCALE)
GROUPS = int(5_000 * SCALE)
CONSUMERS = int(2_000 * SCALE)
PRODUCERS = int(200_000 * SCALE)
TOPIC = "load"
PARTITIONS = 100
TIMEOUT_S = 300


class Seen(NamedTuple):
    """What a load took: seconds for its client, CPU seconds and megabytes of the broker."""

    seconds: float
    cpu_s: float
    memory_mb: float


def run() -> Iterator[Comparison]:
    """One load after the other, each on both brokers."""
    raise_soft_limit()
    loads: list[tuple[str, Callable[[str], object]]] = [
        (f"{CONNECTIONS:,} connections", connect_many),
        (f"{GROUPS:,} groups commit, list", commit_many),
        (f"{CONSUMERS:,} consumers rebalance", rebalance_many),
        (f"{PRODUCERS:,} producer ids", produce_many),
    ]
    with both_brokers() as brokers:
        for broker in brokers:
            asyncio.run(_create_topic(broker.bootstrap_servers))
        for name, load in loads:
            ours, theirs = (_measure(broker, load) for broker in brokers)
            yield Comparison(name, ours.seconds, theirs.seconds, "Kafka", "s")
            yield Comparison(f"{name}, CPU", ours.cpu_s, theirs.cpu_s, "Kafka", "s")
            yield Comparison(
                f"{name}, memory", ours.memory_mb, max(theirs.memory_mb, 0.1), "Kafka", "MB"
            )


def _measure(broker: MeasuredBroker, load: Callable[[str], object]) -> Seen:
    memory, cpu, since = broker.resident_mb(), broker.cpu_seconds(), time.monotonic()
    load(broker.bootstrap_servers)
    seconds = time.monotonic() - since
    cpu_s = max(broker.cpu_seconds() - cpu, 0.01)
    return Seen(seconds, cpu_s, broker.resident_mb() - memory)


async def _create_topic(address: str) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    async with Client(address) as client:
        await client.send_to_controller(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        while True:
            partitions = (await client.refresh_metadata([TOPIC])).topics[0].partitions
            if len(partitions) == PARTITIONS and all(p.leader_id >= 0 for p in partitions):
                return
            await asyncio.sleep(0.1)


# --- the loads ----------------------------------------------------------------------------------


def connect_many(address: str) -> None:
    """Open connections, each with one request; when all are open, send another on each."""
    asyncio.run(_connect_many(address))


async def _connect_many(address: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for _ in range(CONNECTIONS):
            client = await stack.enter_async_context(Client(address, request_timeout_s=TIMEOUT_S))
            await client.send(MetadataRequest(topics=[]))
            clients.append(client)
        await asyncio.gather(*(client.send(MetadataRequest(topics=[])) for client in clients))


def commit_many(address: str) -> None:
    """One committed offset in each group; then list all groups."""
    asyncio.run(_commit_many(address))


async def _commit_many(address: str) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
    async with Client(address, request_timeout_s=TIMEOUT_S) as client:
        for number in range(GROUPS):
            group = f"load-{number}"
            request = OffsetCommitRequest(group_id=group, topics=topics)
            response = await client.send_to_coordinator(group, request)
            assert not response.topics[0].partitions[0].error_code, response
        listed = (await client.send(ListGroupsRequest())).groups
        assert len(listed) >= GROUPS, len(listed)


def rebalance_many(address: str) -> None:
    """The consumers join one group; when all are assigned, another one joins."""
    asyncio.run(rebalance(address, CONSUMERS))


def produce_many(address: str) -> None:
    """One batch of each producer id, in requests of one batch for each partition."""
    asyncio.run(_produce_many(address))


async def _produce_many(address: str) -> None:
    payload = records(1)
    async with Client(address, request_timeout_s=TIMEOUT_S) as client:
        for first in range(0, PRODUCERS, PARTITIONS):
            data = [
                PartitionProduceData(
                    index=index, records=batch(payload, 1, producer=(first + index, 0, 0))
                )
                for index in range(PARTITIONS)
            ]
            topic = TopicProduceData(name=TOPIC, partition_data=data)
            request = ProduceRequest(
                transactional_id=None, acks=1, timeout_ms=60_000, topic_data=[topic]
            )
            response = await client.send(request)
            codes = {part.error_code for part in response.responses[0].partition_responses}
            assert codes == {0}, codes
