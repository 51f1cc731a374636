"""A partition as this broker sees it: who leads it, who is in sync, and its log if it is here."""

from dataclasses import dataclass, field

from broker.errors import ApiError, ErrorCode, NotLeaderOrFollower, OffsetOutOfRange
from broker.log.append import AppendOrigin, LogAppendInfo
from broker.log.offsets import FetchData, FetchIsolation
from broker.log.partition_log import PartitionLog
from broker.log.producer_state import Verification
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.records.layout import BytesLike
from broker.replica.delayed import Moves

ANY_EPOCH = -1
"""A client that does not know the leader epoch sends this; a negative one is not checked."""


@dataclass(slots=True)
class Partition:
    """One replica of a partition, on this broker."""

    name: TopicPartition
    topic_id: Uuid
    broker_id: int
    log: PartitionLog
    state: LeaderAndIsr
    """Invariant: its leader epoch never goes back."""
    min_insync_replicas: int = 1
    moves: Moves = field(default_factory=Moves)
    """Woken whenever the log end offset or the high watermark moves."""

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition."""
        return self.state.leader == self.broker_id

    @property
    def is_under_min_isr(self) -> bool:
        """Whether too few are in sync for acks=all; asked are no more than there are replicas."""
        return len(self.state.isr) < min(self.min_insync_replicas, len(self.state.replicas))

    def check_leader(self, current_leader_epoch: int = ANY_EPOCH) -> None:
        """Raise unless this broker leads, in the epoch that the client thinks it is (KIP-320)."""
        self.check_epoch(current_leader_epoch)
        if not self.is_leader:
            raise NotLeaderOrFollower(f"{self.name} is led by broker {self.state.leader}")

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Raise unless the leader epoch is the one that the client thinks it is."""
        if 0 <= current_leader_epoch != self.state.leader_epoch:
            is_old = current_leader_epoch < self.state.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise ApiError(
                code,
                f"{self.name}: the epoch is {self.state.leader_epoch}, not {current_leader_epoch}",
            )

    def check_replica(self, replica_id: int) -> None:
        """Raise unless a broker that fetches has a replica; consumers have negative ids."""
        if replica_id >= 0 and replica_id not in self.state.replicas:
            raise NotLeaderOrFollower(f"{self.name} has no replica on broker {replica_id}")

    def append_as_leader(
        self,
        records: BytesLike,
        required_acks: int = -1,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification: Verification | None = None,
    ) -> LogAppendInfo:
        """Append and, where the ISR allows it at once, advance the high watermark.

        NOT_ENOUGH_REPLICAS when all must acknowledge and too few are in sync: nothing is written.
        """
        self.check_leader()
        if required_acks == -1 and self.is_under_min_isr:
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.name}: {len(self.state.isr)} in sync, "
                f"min.insync.replicas={self.min_insync_replicas}",
            )
        info = self.log.append_as_leader(records, self.state.leader_epoch, origin, verification)
        self.maybe_advance_high_watermark()
        self.moves.wake()
        return info

    def maybe_advance_high_watermark(self) -> bool:
        """Raise the high watermark to the smallest log end offset in the ISR.

        Invariant: log_start_offset <= high_watermark <= log_end_offset.
        """
        if self.state.isr != (self.broker_id,):
            return False
        return self.log.maybe_increment_high_watermark(self.log.log_end_offset)

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation,
        *,
        min_one_message: bool,
        current_leader_epoch: int = ANY_EPOCH,
    ) -> FetchData:
        """See PartitionLog.read; only a leader serves consumers."""
        self.check_leader(current_leader_epoch)
        return self.log.read(offset, max_bytes, isolation, min_one_message=min_one_message)

    def acks_reached(self, offset: int) -> ErrorCode | None:
        """What acks=all answers for records below `offset`; None while it must wait.

        A. not the leader any more: somebody else decides whether they survive;
        B. all in the ISR have them: done, but an error if the ISR is by now too small;
        C. some do not: wait.
        """
        if not self.is_leader:  # A
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.high_watermark < offset:  # C
            return None
        if self.is_under_min_isr:  # B
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def delete_records(self, before: int | None) -> int:
        """Forget the records before an offset (None: before the high watermark); the new start.

        POLICY_VIOLATION for a topic that is only compacted: there the cleaner decides.
        OffsetOutOfRange beyond the high watermark.
        """
        self.check_leader()
        if not self.log.config.is_deleted_by_retention:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION, f"{self.name}: cleanup.policy does not have delete"
            )
        offset = self.log.high_watermark if before is None else before
        if offset < 0:
            raise OffsetOutOfRange(f"{self.name}: offset {offset} is negative")
        self.log.maybe_increment_log_start_offset(offset)
        return self.log.log_start_offset

    def become(self, state: LeaderAndIsr) -> None:
        """Take up the controller's decision; a leader without followers is at once caught up."""
        is_new_leader = state.leader == self.broker_id and state != self.state
        self.state = state
        if is_new_leader:
            self.log.assign_epoch_start_offset(state.leader_epoch, self.log.log_end_offset)
        if self.is_leader:
            self.maybe_advance_high_watermark()
        self.moves.wake()
