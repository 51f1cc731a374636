"""Partitions in requests: which of them exist, and results grouped by topic."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from broker.api.authorization import unauthorized
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.security.acls import AclOperation

Errors = dict[TopicPartition, ErrorCode]
AnswerT = TypeVar("AnswerT")


def split_by_existence(
    names: Iterable[TopicPartition], context: RequestContext
) -> tuple[list[TopicPartition], dict[TopicPartition, ErrorCode]]:
    """The partitions that exist, and the errors of those that do not."""
    known: list[TopicPartition] = []
    unknown: dict[TopicPartition, ErrorCode] = {}
    for name in names:
        if context.services.metadata.has_partition(*name):
            known.append(name)
        else:
            unknown[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return known, unknown


def split_by_permission(
    names: Iterable[TopicPartition], operation: AclOperation, context: RequestContext
) -> tuple[list[TopicPartition], Errors]:
    """The partitions of topics that the client has a permission for, and errors of the others."""
    names = list(names)
    denied = unauthorized(context, operation, {name.topic for name in names})
    if not denied:
        return names, {}
    return (
        [name for name in names if name.topic not in denied],
        {n: ErrorCode.TOPIC_AUTHORIZATION_FAILED for n in names if n.topic in denied},
    )


def by_topic(
    answers: Mapping[TopicPartition, AnswerT],
) -> Iterable[tuple[str, list[tuple[int, AnswerT]]]]:
    """Each topic once, with its partitions and their results."""
    topics: dict[str, list[tuple[int, AnswerT]]] = {}
    for name, answer in answers.items():
        topics.setdefault(name.topic, []).append((name.partition, answer))
    return topics.items()
