"""Who leads a partition and who is in sync, as the controller has written it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from broker.metadata.znodes.topics import PartitionStateZnode

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""What brokers are told of a partition whose topic is being deleted: that they forget it."""
EPOCH_DURING_DELETE: Final = -2
"""A leader epoch that goes before every other one, in StopReplica."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition's leader and ISR.

    Invariants: whoever changes leader or ISR raises the leader epoch, except for the leader's own
    changes of its ISR; every write raises the partition epoch, which is the version of the node.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0
    controller_epoch: int = 0
    is_recovering: bool = False
    """Whether the leader was elected uncleanly and is not done recovering (KIP-704)."""

    @classmethod
    def first(cls, isr: Sequence[int]) -> "Leadership":
        """Of a new partition: the first replica leads, all are in sync, being empty."""
        return cls(isr[0], 0, tuple(isr))

    @classmethod
    def of(cls, state: PartitionStateZnode, version: int) -> "Leadership":
        """As a node of this version has it."""
        return cls(
            state.leader,
            state.leader_epoch,
            state.isr,
            version,
            state.controller_epoch,
            state.is_recovering,
        )

    def znode(self) -> PartitionStateZnode:
        """As its node holds it."""
        return PartitionStateZnode(
            self.leader, self.leader_epoch, self.isr, self.controller_epoch, self.is_recovering
        )

    def led_by(self, leader: int, isr: Sequence[int] | None = None) -> "Leadership":
        """With this leader, and ISR if it is another one, in the next epoch."""
        return replace(
            self,
            leader=leader,
            leader_epoch=self.leader_epoch + 1,
            isr=self.isr if isr is None else tuple(isr),
        )

    def without(self, broker_id: int) -> "Leadership":
        """After a member of the ISR has gone, in the next epoch.

        The last one stays, so that it is known who has all records; but it does not lead.
        """
        leader = NO_LEADER if self.leader == broker_id else self.leader
        rest = tuple(replica for replica in self.isr if replica != broker_id)
        return self.led_by(leader, rest or self.isr)
