"""What `kctl monitor` sees of a cluster in one cycle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker.model import TopicPartition
from kctl.model.cluster import BrokerFailure, Cluster
from kctl.model.lag import GroupLag, Movement
from kctl.model.log_dirs import LogDir
from kctl.model.topics import Topic

LagKey = tuple[str, TopicPartition]
"""A group and one of its partitions."""


@dataclass(frozen=True)
class ClusterSnapshot:
    """One cycle."""

    name: str
    """The context; without a context, the bootstrap servers."""
    time_s: float
    """Seconds since 1970."""
    cluster: Cluster
    topics: Sequence[Topic] = ()
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    groups: Sequence[GroupLag] = ()
    log_dirs: Sequence[LogDir] = ()
    unanswered: Sequence[BrokerFailure] = ()
    lag_seconds: Mapping[LagKey, float] = field(default_factory=dict)
    """How long ago the record at the committed offset was written, where that is known."""
    movements: Mapping[LagKey, Movement] = field(default_factory=dict)

    def replica_sizes(self) -> dict[tuple[TopicPartition, int], int]:
        """Bytes of each replica, by partition and broker, without future replicas."""
        return {
            (replica.partition, log_dir.broker_id): replica.size_bytes
            for log_dir in self.log_dirs
            for replica in log_dir.replicas
            if not replica.is_future
        }


@dataclass(frozen=True)
class LagSample:
    """The lag of a group on a topic at one time, as stored in the history."""

    time_s: float
    cluster: str
    group: str
    topic: str
    lag: int
    lag_seconds: float | None
    produced: int
    """Sum of the log end offsets."""
    committed: int
    """Sum of the committed offsets."""
