"""The state of single replicas."""

from dataclasses import dataclass

from broker.model import TopicPartition


@dataclass(frozen=True)
class ReplicaState:
    """A replica as its own broker reports it; None for what the broker did not report."""

    partition: TopicPartition
    broker: int
    is_leader: bool
    is_in_sync: bool
    """Whether it is in the ISR."""
    is_online: bool
    """Whether its broker is in the cluster."""
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None
    lag: int | None = None
    """Records that the leader's log has and this one does not; None without the leader's answer."""
    size_bytes: int | None = None
    error: str | None = None
    """The error that its broker returned."""
