"""Which of the partitions a request names exist."""

from collections.abc import Iterable

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.model import TopicPartition


def split_by_existence(
    names: Iterable[TopicPartition], context: RequestContext
) -> tuple[list[TopicPartition], dict[TopicPartition, ErrorCode]]:
    """Those that exist, and the error of those that do not."""
    known: list[TopicPartition] = []
    unknown: dict[TopicPartition, ErrorCode] = {}
    for name in names:
        topic = context.services.metadata.topics.get(name.topic)
        if topic is not None and 0 <= name.partition < len(topic.partitions):
            known.append(name)
        else:
            unknown[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return known, unknown
