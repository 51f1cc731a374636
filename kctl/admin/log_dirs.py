"""DescribeLogDirs."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from kctl.admin.broker_queries import each_broker
from kctl.model.log_dirs import LogDir, Replica
from kctl.model.topics import Topic


async def describe_log_dirs(
    client: Client, broker_ids: Iterable[int] | None = None, topics: Iterable[Topic] | None = None
) -> list[LogDir]:
    """The directories of these brokers (None: all), with the replicas of these topics (None: all).

    In a partial query, the directories of brokers that did not answer are missing.
    """
    wanted = None
    if topics is not None:
        wanted = [
            DescribableLogDirTopic(topic=topic.name, partitions=[p.id for p in topic.partitions])
            for topic in topics
        ]
    await client.refresh_metadata()
    return await _described(client, broker_ids, wanted)


async def partition_sizes(
    client: Client, leaders: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The bytes of the log of each partition, from the broker that is given for it."""
    wanted = [
        DescribableLogDirTopic(topic=topic, partitions=[each.partition for each in partitions])
        for topic, partitions in groupby(sorted(leaders), attrgetter("topic"))
    ]
    return {
        replica.partition: replica.size_bytes
        for log_dir in await _described(client, leaders.values(), wanted)
        for replica in log_dir.replicas
        if leaders[replica.partition] == log_dir.broker_id and not replica.is_future
    }


async def _described(
    client: Client, broker_ids: Iterable[int] | None, topics: list[DescribableLogDirTopic] | None
) -> list[LogDir]:
    request = DescribeLogDirsRequest(topics=topics)
    brokers = sorted(client.cluster.nodes.keys() if broker_ids is None else set(broker_ids))
    answers = await each_broker(
        client, dict.fromkeys(brokers), lambda broker_id, _: client.send_to(broker_id, request)
    )
    return [
        _log_dir(broker_id, result)
        for broker_id, answer in answers.items()
        for result in answer.results
    ]


def _log_dir(broker_id: int, result: DescribeLogDirsResult) -> LogDir:
    replicas = [
        Replica(
            TopicPartition(topic.name, partition.partition_index),
            partition.partition_size,
            partition.offset_lag,
            partition.is_future_key,
        )
        for topic in result.topics
        for partition in topic.partitions
    ]
    return LogDir(
        broker_id=broker_id,
        path=result.log_dir,
        error=ErrorCode(result.error_code),
        total_bytes=result.total_bytes if result.total_bytes >= 0 else None,
        usable_bytes=result.usable_bytes if result.usable_bytes >= 0 else None,
        replicas=tuple(replicas),
    )
