"""The KRaft quorum: the controllers that replicate the cluster's metadata log."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.model import Uuid

LEADER, FOLLOWER, OBSERVER = "leader", "follower", "observer"


@dataclass(frozen=True)
class QuorumReplica:
    """One replica of the metadata log."""

    id: int
    directory_id: Uuid
    """All zero before Kafka 3.9, and in quorums with static voters."""
    role: str
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True)
class Quorum:
    """The quorum as its leader sees it."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """`CONTROLLER://host:port` by node; empty before Kafka 3.9."""

    @property
    def leader(self) -> QuorumReplica | None:
        """The leader, if it is a voter."""
        return next((voter for voter in self.voters if voter.id == self.leader_id), None)

    def lag(self, replica: QuorumReplica) -> int | None:
        """Records by which a replica is behind the leader."""
        return self.leader.log_end_offset - replica.log_end_offset if self.leader else None

    @property
    def slowest_voter(self) -> QuorumReplica | None:
        """The voter with the lowest log end offset, the first of several."""
        return min(self.voters, key=lambda voter: voter.log_end_offset, default=None)

    @property
    def max_follower_lag_ms(self) -> int | None:
        """Time between the leader and the slowest voter; None if it is unknown."""
        leader, slowest = self.leader, self.slowest_voter
        if leader is None or slowest is None:
            return None
        if leader == slowest:
            return 0
        if leader.last_caught_up_ms is None or slowest.last_caught_up_ms is None:
            return None
        return leader.last_caught_up_ms - slowest.last_caught_up_ms
