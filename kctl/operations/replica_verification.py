"""Reads every replica of partitions, not only the leaders, and compares them."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition, Uuid
from broker.net.client import Client
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from kctl.model.replica_checks import Fetched
from kctl.plans.replica_comparison import ReplicaCheck

DEBUGGING_CONSUMER = -2
"""The replica id of a client that may also fetch from followers."""
_REPLICA_STATE_SINCE = 15
_ANSWER_S = 10.0


@dataclass(frozen=True)
class FetchSizes:
    """Limits of a fetch."""

    partition_bytes: int = 1 << 20
    max_wait_ms: int = 500


async def compare_once(
    client: Client,
    checks: Sequence[ReplicaCheck],
    ids: Mapping[str, Uuid],
    sizes: FetchSizes,
) -> bool:
    """Fetch from all replicas at the current offsets and compare; whether any check advanced."""
    wanted: dict[int, list[ReplicaCheck]] = defaultdict(list)
    for check in checks:
        for broker in check.replicas:
            wanted[broker].append(check)
    answers = await asyncio.gather(
        *(_fetch(client, broker, some, ids, sizes) for broker, some in wanted.items())
    )
    by_broker = dict(zip(wanted, answers, strict=True))
    progress = [
        check.compare(
            {
                broker: by_broker[broker][check.partition]
                for broker in check.replicas
                if check.partition in by_broker[broker]
            }
        )
        for check in checks
    ]
    return any(progress)


async def _fetch(
    client: Client,
    broker: int,
    checks: Sequence[ReplicaCheck],
    ids: Mapping[str, Uuid],
    sizes: FetchSizes,
) -> dict[TopicPartition, Fetched]:
    """The data of one broker; nothing if it does not answer."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            versions = await client.versions_of(broker)
            newest = versions.get(ApiKey.FETCH, (0, 0))[1]
            answer = await client.send_to(broker, _request(checks, ids, sizes, newest))
    except (OSError, TimeoutError, ApiError):
        return {}
    return _read(answer, ids)


def _request(
    checks: Sequence[ReplicaCheck], ids: Mapping[str, Uuid], sizes: FetchSizes, newest: int
) -> FetchRequest:
    by_topic: dict[str, list[FetchPartition]] = defaultdict(list)
    for check in checks:
        by_topic[check.partition.topic].append(
            FetchPartition(
                partition=check.partition.partition,
                fetch_offset=check.offset,
                partition_max_bytes=sizes.partition_bytes,
            )
        )
    has_state = newest >= _REPLICA_STATE_SINCE
    return FetchRequest(
        replica_id=-1 if has_state else DEBUGGING_CONSUMER,
        replica_state=ReplicaState(replica_id=DEBUGGING_CONSUMER if has_state else -1),
        max_wait_ms=sizes.max_wait_ms,
        min_bytes=1,
        topics=[
            FetchTopic(topic=name, topic_id=ids.get(name, Uuid.ZERO), partitions=some)
            for name, some in by_topic.items()
        ],
    )


def _read(answer: FetchResponse, ids: Mapping[str, Uuid]) -> dict[TopicPartition, Fetched]:
    names = {topic_id: name for name, topic_id in ids.items()}
    return {
        TopicPartition(topic.topic or names[topic.topic_id], one.partition_index): _fetched(one)
        for topic in answer.responses
        for one in topic.partitions
    }


def _fetched(one: PartitionData) -> Fetched:
    records = one.records
    data = records if isinstance(records, bytes | bytearray | memoryview) else b""
    return Fetched(one.high_watermark, data, ErrorCode(one.error_code))
