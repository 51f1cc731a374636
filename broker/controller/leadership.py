"""A partition's leader and ISR as stored: Kafka's LeaderIsrAndControllerEpoch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from broker.metadata.znodes.topics import PartitionStateZnode
from broker.model import NO_LEADER

EPOCH_DURING_DELETE: Final = -2
"""The leader epoch in StopReplica for a deleted topic: it overrides every other epoch."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition's leader and ISR.

    Invariants: a change of leader or ISR raises the leader epoch, except changes of the ISR that
    the leader requests. Every write raises the partition epoch, which is the version of the node.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0
    controller_epoch: int = 0
    is_recovering: bool = False
    """Whether the leader was elected uncleanly and has not finished recovery (KIP-704)."""

    @classmethod
    def first(cls, isr: Sequence[int]) -> "Leadership":
        """The state of a new partition: the first replica leads, all are in the ISR."""
        return cls(isr[0], 0, tuple(isr))

    @classmethod
    def of(cls, state: PartitionStateZnode, version: int) -> "Leadership":
        """The state that a node contains, with the node's version."""
        return cls(
            state.leader,
            state.leader_epoch,
            state.isr,
            version,
            state.controller_epoch,
            state.is_recovering,
        )

    def znode(self) -> PartitionStateZnode:
        """The contents of the partition's node."""
        return PartitionStateZnode(
            self.leader, self.leader_epoch, self.isr, self.controller_epoch, self.is_recovering
        )

    def led_by(self, leader: int, isr: Sequence[int] | None = None) -> "Leadership":
        """The same with this leader, and this ISR if given, in the next leader epoch."""
        return replace(
            self,
            leader=leader,
            leader_epoch=self.leader_epoch + 1,
            isr=self.isr if isr is None else tuple(isr),
        )

    def without(self, broker_id: int) -> "Leadership":
        """The same after a member has left the ISR, in the next leader epoch.

        The last member stays in the ISR, but does not lead: the store must not forget which
        replica has all committed records.
        """
        leader = NO_LEADER if self.leader == broker_id else self.leader
        rest = tuple(replica for replica in self.isr if replica != broker_id)
        return self.led_by(leader, rest or self.isr)
