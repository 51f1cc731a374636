"""The end-to-end probe: records that are written to a topic of its own and read back."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition, Uuid
from broker.net.client import Client, RequestTimedOut
from broker.net.failures import ConnectionFailed
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.records.batch import iterate_batches
from broker.records.builder import build_batch
from kctl.admin.topics import create_topics
from kctl.model.monitoring import ProbeResult
from kctl.model.topics import NewTopic

_PATIENCE_S: Final = 5.0
"""A record that is not acknowledged or not read within this time has failed, or is lost."""
_MAX_REPLICAS: Final = 3
_ALL: Final = -1
_CONFIGS: Final = {"retention.ms": "3600000", "cleanup.policy": "delete"}
_FAILURES: Final = (ConnectionFailed, RequestTimedOut, ApiError, TimeoutError)


async def probe(client: Client, topic: str) -> Sequence[ProbeResult]:
    """Write a record to every partition of the topic, and read it back; all at the same time.

    Creates the topic, with a partition per broker, if it is missing. ApiError if it cannot.
    """
    topic_id, partitions = await _partitions(client, topic)
    if not partitions:
        await _create(client, topic)
        topic_id, partitions = await _partitions(client, topic)
    places = [TopicPartition(topic, number) for number in partitions]
    return await asyncio.gather(*(_probe_partition(client, place, topic_id) for place in places))


async def _partitions(client: Client, topic: str) -> tuple[Uuid, list[int]]:
    (found,) = (await client.refresh_metadata([topic])).topics
    if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        raise ApiError(ErrorCode(found.error_code), f"not authorized for the topic {topic}")
    return found.topic_id, sorted(one.partition_index for one in found.partitions)


async def _create(client: Client, topic: str) -> None:
    """A partition per broker: the controller spreads their leaders."""
    num_brokers = len(client.cluster.nodes)
    new = NewTopic(topic, num_brokers, min(_MAX_REPLICAS, num_brokers), configs=_CONFIGS)
    (outcome,) = await create_topics(client, [new], timeout_s=_PATIENCE_S)
    if outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise ApiError(outcome.error, outcome.message)
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:  # brokers get to know it a little later
        (found,) = (await client.refresh_metadata([topic])).topics
        if found.partitions and all(one.leader_id >= 0 for one in found.partitions):
            return
        await asyncio.sleep(0.05)


async def _probe_partition(client: Client, place: TopicPartition, topic_id: Uuid) -> ProbeResult:
    key = uuid4().bytes
    started_s = time.perf_counter()
    try:
        async with asyncio.timeout(_PATIENCE_S):
            offset = await _produce(client, place, key)
    except _FAILURES:
        return ProbeResult(place.partition, None, None)
    produced_s = time.perf_counter() - started_s
    with suppress(*_FAILURES):
        async with asyncio.timeout(_PATIENCE_S):
            while not await _is_read(client, place, topic_id, offset, key):
                pass  # a fetch waits for records
            return ProbeResult(place.partition, produced_s, time.perf_counter() - started_s)
    return ProbeResult(place.partition, produced_s, None)


async def _produce(client: Client, place: TopicPartition, key: bytes) -> int:
    """Write one record with acks=all; its offset."""
    now_ms = round(time.time() * 1000)
    records = build_batch([(0, now_ms, key, b"kctl monitor --probe", ())])
    data = PartitionProduceData(index=place.partition, records=records)
    request = ProduceRequest(
        acks=_ALL,
        timeout_ms=round(_PATIENCE_S * 1000),
        topic_data=[TopicProduceData(name=place.topic, partition_data=[data])],
    )
    answer = (await client.send_to_leader(place, request)).responses[0].partition_responses[0]
    if answer.error_code:
        raise ApiError(ErrorCode(answer.error_code), answer.error_message or "")
    return answer.base_offset


async def _is_read(
    client: Client, place: TopicPartition, topic_id: Uuid, offset: int, key: bytes
) -> bool:
    asked = FetchPartition(
        partition=place.partition, fetch_offset=offset, partition_max_bytes=1 << 16
    )
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=place.topic, topic_id=topic_id, partitions=[asked])],
    )
    for response in (await client.send_to_leader(place, request)).responses:
        for found in response.partitions:
            if found.error_code:
                raise ApiError(ErrorCode(found.error_code))
            if isinstance(found.records, bytes | bytearray | memoryview):
                for batch in iterate_batches(found.records):
                    if any(record[2] == key for record in batch.record_tuples()):
                        return True
    return False
