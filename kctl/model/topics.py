"""Topics and partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker.model import TopicPartition, Uuid
from kctl.model.configs import Config
from kctl.model.log_dirs import LogDir

TopicAssignment = Sequence[Sequence[int]]
"""Replicas of partition 0, 1, …; the first of each is the preferred leader."""


@dataclass(frozen=True)
class Partition:
    """One partition."""

    id: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] | None = None
    """Replicas being added; None if no reassignment is in progress."""
    removing: tuple[int, ...] | None = None

    @property
    def replication_factor(self) -> int:
        """The number of replicas, without those being added."""
        if self.adding is None or not {*self.adding, *(self.removing or ())} & {*self.replicas}:
            return len(self.replicas)
        return len(self.replicas) - len(self.adding)

    @property
    def has_preferred_leader(self) -> bool:
        """Whether the leader is the first replica."""
        return self.leader is not None and self.leader == self.replicas[0]

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is missing from the ISR."""
        return self.replication_factor > len(self.isr)


@dataclass(frozen=True)
class Topic:
    """One topic; partitions sorted by id."""

    name: str
    topic_id: Uuid | None
    is_internal: bool
    partitions: tuple[Partition, ...]

    @property
    def replication_factor(self) -> int:
        """The replication factor of the first partition, as in Kafka's tool."""
        return self.partitions[0].replication_factor if self.partitions else 0

    def assignment(self) -> list[list[int]]:
        """The replicas of every partition."""
        return [list(partition.replicas) for partition in self.partitions]


@dataclass(frozen=True)
class NewTopic:
    """A topic to create; None selects the broker's default."""

    name: str
    num_partitions: int | None = None
    replication_factor: int | None = None
    assignment: TopicAssignment | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True)
class Description:
    """Everything known about some topics; parts that were not queried are empty."""

    topics: Sequence[Topic]
    configs: Mapping[str, Sequence[Config]] = field(default_factory=dict)
    live_brokers: frozenset[int] = frozenset()
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    log_dirs: Sequence[LogDir] = ()

    def min_isr(self, topic: Topic) -> int:
        """The effective min.insync.replicas."""
        values = [config.value for config in self.configs[topic.name] if config.name == MIN_ISR]
        return int(values[0]) if values and values[0] else 1

    def sizes(self) -> dict[tuple[TopicPartition, int], int]:
        """Bytes of each replica, by partition and broker, without future replicas."""
        return {
            (replica.partition, log_dir.broker_id): replica.size_bytes
            for log_dir in self.log_dirs
            for replica in log_dir.replicas
            if not replica.is_future
        }
