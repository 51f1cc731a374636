"""What `kctl top` reads of a cluster, and the rates computed from several readings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker.model import TopicPartition
from kctl.model.monitoring import ClusterSnapshot
from kctl.model.reassignments import Reassignments

ReplicaKey = tuple[TopicPartition, int]
"""A partition and the broker of one of its replicas."""


@dataclass(frozen=True)
class TrafficCounters:
    """Traffic since the broker started."""

    messages_in: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0


@dataclass(frozen=True)
class BrokerCounters:
    """What the metrics of one broker say."""

    time_s: float
    total: TrafficCounters
    by_topic: Mapping[str, TrafficCounters]
    requests: float
    produce_p99_ms: float | None
    """99th percentile of the total time of produce requests; None if there were none."""


@dataclass(frozen=True)
class Reading:
    """One reading of a cluster."""

    snapshot: ClusterSnapshot
    moving: Reassignments = field(default_factory=dict)
    counters: Mapping[int, BrokerCounters] = field(default_factory=dict)
    """By broker id, for brokers whose metrics are known."""
    replica_ends: Mapping[ReplicaKey, int] = field(default_factory=dict)
    """Log end offset of each replica."""
    problems: Sequence[str] = ()
    """What could not be read, one sentence each."""


@dataclass(frozen=True)
class Rates:
    """Traffic per second; None where it is unknown."""

    messages_in: float | None = None
    bytes_in: float | None = None
    bytes_out: float | None = None


@dataclass(frozen=True)
class Copy:
    """How far a reassignment has come."""

    arrived_bytes: int
    move_bytes: int
    bytes_per_s: float | None

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining time; None if it is unknown."""
        left = self.move_bytes - self.arrived_bytes
        return left / self.bytes_per_s if self.bytes_per_s and left > 0 else None


@dataclass(frozen=True)
class TrafficRates:
    """All rates of one reading."""

    partitions: Mapping[TopicPartition, Rates] = field(default_factory=dict)
    topics: Mapping[str, Rates] = field(default_factory=dict)
    brokers: Mapping[int, Rates] = field(default_factory=dict)
    requests: Mapping[int, float] = field(default_factory=dict)
    """Requests per second, by broker id."""
    copies: Mapping[TopicPartition, Copy] = field(default_factory=dict)
    """Of the reassignments in progress."""
    topic_history: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    """Records per second between one reading and the next, the newest last."""


@dataclass(frozen=True)
class TopSample:
    """A reading with everything that several readings show."""

    reading: Reading
    rates: TrafficRates = field(default_factory=TrafficRates)
    lag_history: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Lags of each group, the newest last."""
