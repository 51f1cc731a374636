"""DescribeLogDirs."""

from collections.abc import Iterable

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
    request = DescribeLogDirsRequest(topics=wanted)
    await client.refresh_metadata()
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
