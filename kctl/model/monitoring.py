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


class LatencyHistogram:
    """Durations in the buckets of kminion: 5 ms, and twice as much each."""

    BOUNDS_S = tuple(0.005 * 2**power for power in range(12))

    def __init__(self) -> None:
        self.counts = [0] * len(self.BOUNDS_S)
        """Durations up to each bound, cumulative as in Prometheus."""
        self.count = 0
        self.sum_s = 0.0

    def add(self, duration_s: float) -> None:
        """Count one duration."""
        self.count += 1
        self.sum_s += duration_s
        for number, bound_s in enumerate(self.BOUNDS_S):
            self.counts[number] += duration_s <= bound_s


@dataclass(frozen=True)
class ProbeResult:
    """One record of the end-to-end probe."""

    partition: int
    produce_s: float | None
    """Until it was acknowledged; None if it was not."""
    roundtrip_s: float | None
    """Until it was read back; None if it was not."""


@dataclass
class ProbeCounters:
    """The probes of one partition since the start."""

    produced: int = 0
    failed: int = 0
    received: int = 0
    lost: int = 0
    """Acknowledged, and not read back in time."""
    produce_times: LatencyHistogram = field(default_factory=LatencyHistogram)
    roundtrip_times: LatencyHistogram = field(default_factory=LatencyHistogram)


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
    certificates: Mapping[int, float] = field(default_factory=dict)
    """When the certificate of each broker expires, in seconds since 1970; empty without TLS."""
    probes: Mapping[int, ProbeCounters] = field(default_factory=dict)
    """The end-to-end probe, by partition; empty if it is not enabled."""

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
