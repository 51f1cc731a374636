"""Reassignments in progress, starting and cancelling them, and the layout of replicas."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kctl.admin.broker_queries import (
    change_by_controller,
    from_controller,
    request_timeout_ms,
    unavailable_controller,
)
from kctl.admin.cluster import describe_cluster
from kctl.admin.topics import find_topics
from kctl.model.assignments import Assignment, Layout
from kctl.model.outcomes import Outcome, outcome
from kctl.model.reassignments import Reassignment
from kctl.model.topics import Topic

SIZES_S = 5.0
"""Timeout of a broker for the sizes of its replicas."""


async def list_reassignments(client: Client) -> dict[TopicPartition, Reassignment]:
    """All reassignments in progress, sorted by partition."""
    answer = await from_controller(client, ListPartitionReassignmentsRequest())
    if answer is None:
        raise unavailable_controller(client)
    if answer.error_code:
        raise ApiError(ErrorCode(answer.error_code), answer.error_message or "")
    found = [
        Reassignment(
            TopicPartition(topic.name, one.partition_index),
            tuple(one.replicas),
            tuple(one.adding_replicas),
            tuple(one.removing_replicas),
        )
        for topic in answer.topics
        for one in topic.partitions
    ]
    return {one.partition: one for one in sorted(found, key=lambda one: one.partition)}


async def begin_reassignments(
    client: Client, wanted: Assignment, *, timeout_s: float
) -> list[Outcome]:
    """Start reassignments; the outcome of each partition."""
    return await _alter(client, {tp: list(replicas) for tp, replicas in wanted.items()}, timeout_s)


async def cancel_reassignments(
    client: Client, partitions: Iterable[TopicPartition], *, timeout_s: float
) -> list[Outcome]:
    """Cancel reassignments; the outcome of each partition."""
    return await _alter(client, dict.fromkeys(partitions), timeout_s)


async def _alter(
    client: Client, wanted: Mapping[TopicPartition, list[int] | None], timeout_s: float
) -> list[Outcome]:
    by_topic: dict[str, list[ReassignablePartition]] = defaultdict(list)
    for (topic, partition), replicas in sorted(wanted.items()):
        one = ReassignablePartition(partition_index=partition, replicas=replicas)
        by_topic[topic].append(one)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=request_timeout_ms(timeout_s),
        topics=[ReassignableTopic(name=name, partitions=some) for name, some in by_topic.items()],
    )
    answer = await change_by_controller(client, request)
    if answer.error_code:
        raise ApiError(ErrorCode(answer.error_code), answer.error_message or "")
    return [
        outcome(f"{topic.name}-{one.partition_index}", one.error_code, one.error_message)
        for topic in answer.responses
        for one in topic.partitions
    ]


async def find_layout(client: Client, topics: Iterable[Topic]) -> Layout:
    """Replicas, sizes and brokers of these topics.

    The size of a partition is that of its leader, or of its largest replica if it has no leader.
    """
    chosen = list(topics)
    cluster, sizes = await asyncio.gather(describe_cluster(client), replica_sizes(client, chosen))
    replicas = {
        TopicPartition(topic.name, partition.id): partition.replicas
        for topic in chosen
        for partition in topic.partitions
    }
    return Layout(
        {broker.id: broker.rack for broker in cluster.brokers},
        replicas,
        _partition_sizes(chosen, sizes),
    )


def _partition_sizes(
    topics: Iterable[Topic], sizes: Mapping[tuple[TopicPartition, int], int]
) -> dict[TopicPartition, int]:
    found = {}
    for topic in topics:
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.id)
            of_replicas = {b: sizes[key, b] for b in partition.replicas if (key, b) in sizes}
            largest = max(of_replicas.values(), default=0)
            found[key] = (
                largest if partition.leader is None else of_replicas.get(partition.leader, largest)
            )
    return found


async def replica_sizes(
    client: Client, topics: Iterable[Topic]
) -> dict[tuple[TopicPartition, int], int]:
    """Bytes of each replica by partition and broker, without future replicas.

    A broker that does not answer quickly is left out: it may be hung, and the reason for the move.
    """
    asked = [
        DescribableLogDirTopic(topic=topic.name, partitions=[p.id for p in topic.partitions])
        for topic in topics
    ]
    await client.refresh_metadata()
    found = await asyncio.gather(*(_sizes_on(client, node, asked) for node in client.cluster.nodes))
    return {place: size for sizes in found for place, size in sizes.items()}


async def _sizes_on(
    client: Client, broker: int, topics: list[DescribableLogDirTopic]
) -> dict[tuple[TopicPartition, int], int]:
    try:
        async with asyncio.timeout(min(SIZES_S, client.request_timeout_s / 3)):
            answer = await client.send_to(broker, DescribeLogDirsRequest(topics=topics))
    except (OSError, TimeoutError, ApiError):
        return {}
    return {
        (TopicPartition(topic.name, one.partition_index), broker): one.partition_size
        for result in answer.results
        for topic in result.topics
        for one in topic.partitions
        if not one.is_future_key
    }


async def current_replicas(
    client: Client, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, ...]]:
    """The current replicas of partitions; partitions that do not exist are missing."""
    wanted = set(partitions)
    topics = await find_topics(client, sorted({partition.topic for partition in wanted}))
    found = {TopicPartition(t.name, p.id): p.replicas for t in topics for p in t.partitions}
    return {partition: found[partition] for partition in sorted(wanted & found.keys())}


async def are_known_everywhere(client: Client, replicas: Assignment) -> bool:
    """Whether the metadata of every broker that answers soon has these replicas."""
    topics = [MetadataRequestTopic(name=name) for name in sorted({tp.topic for tp in replicas})]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    await client.refresh_metadata()
    known = await asyncio.gather(*(_metadata(client, n, request) for n in client.cluster.nodes))
    return all(found is None or replicas.items() <= found.items() for found in known)


async def _metadata(
    client: Client, broker: int, request: MetadataRequest
) -> dict[TopicPartition, tuple[int, ...]] | None:
    try:
        async with asyncio.timeout(min(SIZES_S, client.request_timeout_s / 3)):
            answer = await client.send_to(broker, request)
    except (OSError, TimeoutError, ApiError):
        return None
    return {
        TopicPartition(topic.name or "", one.partition_index): tuple(one.replica_nodes)
        for topic in answer.topics
        for one in topic.partitions
    }
