"""Stray replicas: directories of partitions that their broker does not replicate."""

from collections.abc import Iterable

from broker.model import TopicPartition
from kctl.model.log_dirs import LogDir
from kctl.model.topics import Topic

Stray = tuple[int, TopicPartition]
"""A broker, and a partition of which it has a directory but no replica."""


def stray_replicas(log_dirs: Iterable[LogDir], topics: Iterable[Topic]) -> frozenset[Stray]:
    """Directories of topics that do not exist, or whose broker is not in the replica list.

    A broker that was down while a topic was deleted or a replica moved can have some. Replicas
    being added count as replicas.
    """
    assigned = {
        (broker, TopicPartition(topic.name, partition.id))
        for topic in topics
        for partition in topic.partitions
        for broker in (*partition.replicas, *(partition.adding or ()))
    }
    found = ((one.broker_id, replica.partition) for one in log_dirs for replica in one.replicas)
    return frozenset(found) - assigned
