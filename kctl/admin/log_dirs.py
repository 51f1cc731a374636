"""Log directories of brokers: what is in them and how large it is."""

from collections.abc import Iterable
from dataclasses import dataclass

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from kctl.admin.topics import Topic
from kctl.errors import CliError


@dataclass(frozen=True)
class Replica:
    """One replica in a directory."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    """How far behind the high watermark, or behind the replica it is to take the place of."""
    is_future: bool
    """Whether it is a copy on its way from another directory of the same broker."""


@dataclass(frozen=True)
class LogDir:
    """One directory of one broker; replicas in the order the broker names them."""

    broker_id: int
    path: str
    error: ErrorCode
    total_bytes: int | None
    usable_bytes: int | None
    replicas: tuple[Replica, ...]


async def describe_log_dirs(
    client: Client, broker_ids: Iterable[int] | None = None, topics: Iterable[Topic] | None = None
) -> list[LogDir]:
    """The directories of these brokers (None: all), with the replicas of these topics (None: all).

    CliError if a broker does not answer: sizes that leave one out would be wrong without a sign.
    """
    wanted = None
    if topics is not None:
        wanted = [
            DescribableLogDirTopic(topic=topic.name, partitions=[p.id for p in topic.partitions])
            for topic in topics
        ]
    answers = await client.send_to_all(DescribeLogDirsRequest(topics=wanted))
    asked = set(answers) if broker_ids is None else set(broker_ids)
    found = []
    for broker_id in sorted(asked & answers.keys()):
        answer = answers[broker_id]
        if isinstance(answer, Exception):
            raise CliError(f"broker {broker_id} did not tell: {answer}", "is it up?") from answer
        found += [_log_dir(broker_id, result) for result in answer.results]
    return found


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
