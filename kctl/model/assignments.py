"""Assignments of replicas to brokers and log directories."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.model import TopicPartition

Assignment = Mapping[TopicPartition, tuple[int, ...]]
"""The replicas of partitions; the first of each is the preferred leader."""


@dataclass(frozen=True)
class Layout:
    """The replicas of some topics, and the brokers of the cluster."""

    brokers: Mapping[int, str | None]
    """Live brokers and their racks."""
    replicas: Assignment
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Bytes of one replica of each partition; missing partitions count as empty."""

    def size(self, partition: TopicPartition) -> int:
        """Bytes of one replica."""
        return self.sizes.get(partition, 0)


ReplicaPlace = tuple[TopicPartition, int]
"""A replica: its partition and its broker."""


@dataclass(frozen=True)
class ReassignmentFile:
    """The contents of a plan file: replicas, and log directories for some of them."""

    replicas: Assignment
    log_dirs: Mapping[ReplicaPlace, str] = field(default_factory=dict)
