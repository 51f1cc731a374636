"""A partition as this broker sees it: who leads it, who is in sync, and its log.

The controller decides who leads (`become`), the leader who is in sync; but it only proposes: the
controller writes the ISR down, and until it has answered AlterPartition the leader counts on
neither outcome (KIP-497):

    state            isr that counts for min.insync.replicas     maximal isr, for the high watermark
    committed        the committed one                           the same
    wants to expand  the committed one                           with the new member
    wants to shrink  the committed one                           the same

Everything here happens on the event loop, so no lock guards it; the log has its own.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from broker.clock import Clock, SystemClock
from broker.errors import ApiError, ErrorCode, NotLeaderOrFollower, OffsetOutOfRange
from broker.log.append import AppendOrigin, LogAppendInfo, UnexpectedAppendOffset
from broker.log.partition_log import PartitionLog
from broker.log.producer_state import Verification
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.records.layout import BytesLike
from broker.replica.delayed import Moves
from broker.replica.in_sync import (
    RemoteReplica,
    high_watermark_of,
    is_in_sync,
    low_watermark_of,
    out_of_sync_replicas,
)

logger = logging.getLogger("state.change")

ANY_EPOCH = -1
"""A client that does not know the leader epoch sends this; a negative one is not checked."""
NO_LEADER = -1
_NOBODY: frozenset[int] = frozenset()


def _not_asked(partition: "Partition", isr: tuple[int, ...]) -> None:
    """There is no controller to ask."""


@dataclass
class Surroundings:
    """What a partition must know of the rest of the cluster; one for all partitions."""

    clock: Clock = field(default_factory=SystemClock)
    max_lag_ms: int = 30_000
    """`replica.lag.time.max.ms`."""
    is_alive: Callable[[int], bool] = lambda _: True
    """Whether a broker is in the cluster."""
    propose_isr: Callable[["Partition", tuple[int, ...]], None] = _not_asked
    """Ask the controller for another ISR; it answers with `isr_accepted` or `isr_refused`."""


@dataclass(slots=True, eq=False)
class Partition:
    """One replica of a partition, on this broker."""

    name: TopicPartition
    topic_id: Uuid
    broker_id: int
    log: PartitionLog
    state: LeaderAndIsr
    """Invariant: its leader epoch and its partition epoch never go back."""
    min_insync_replicas: int = 1
    surroundings: Surroundings = field(default_factory=Surroundings)
    moves: Moves = field(default_factory=Moves)
    """Woken whenever the log end offset or the high watermark moves."""
    followers: dict[int, RemoteReplica] = field(default_factory=dict)
    """The other replicas. Invariant: empty unless this broker leads."""
    proposed_isr: tuple[int, ...] | None = None
    """What the controller was asked for and has not answered; None if nothing is under way."""
    maximal_isr: frozenset[int] = _NOBODY
    """Who must have a record before it counts as replicated. Invariant: holds the ISR."""
    leader_high_watermark: int = 0
    """What the leader last told us, if we follow; our own may be lower, as far as our log goes."""
    _told_log_start_offset: int = 0
    """Where the log began when sessions were last told."""
    epoch_start_offset: int = 0
    """The log end offset at which this broker began to lead in the present epoch."""

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition."""
        return self.state.leader == self.broker_id

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, but no more than there are replicas."""
        return min(self.min_insync_replicas, len(self.state.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        """Whether too few are in sync for acks=all."""
        in_sync = len(self.state.isr)
        return in_sync < self.min_insync_replicas and in_sync < len(self.state.replicas)

    # --- who may ask -----------------------------------------------------------------------------

    def check_leader(self, current_leader_epoch: int = ANY_EPOCH) -> None:
        """Raise unless this broker leads, in the epoch that the client thinks it is (KIP-320)."""
        self.check_epoch(current_leader_epoch)
        if self.state.leader != self.broker_id:
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

    def follower(self, replica_id: int, current_leader_epoch: int = ANY_EPOCH) -> RemoteReplica:
        """What is known of a follower; an ApiError if that broker has no replica.

        One that names the right epoch knows something that we do not yet: it shall ask again.
        """
        replica = self.followers.get(replica_id)
        if replica is None:
            message = f"{self.name} has no replica on broker {replica_id}"
            if current_leader_epoch >= 0:
                raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH, message)
            raise NotLeaderOrFollower(message)
        return replica

    # --- as leader: appending --------------------------------------------------------------------

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
        self.moves.log_end_moved()
        self.maybe_advance_high_watermark()
        return info

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
        if len(self.maximal_isr) < self.effective_min_isr:  # B
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def maybe_advance_high_watermark(self) -> bool:
        """Raise the high watermark as far as the replicas that count have come.

        It stays where it is while the ISR is smaller than `min.insync.replicas`.
        Invariant: log_start_offset <= high_watermark <= log_end_offset.
        """
        if self.is_under_min_isr:
            return False
        offset = self.log.log_end_offset
        if self.followers:
            offset = high_watermark_of(
                offset, self.followers.values(), self.maximal_isr, self._may_join
            )
        if not self.log.maybe_increment_high_watermark(offset):
            return False
        self.moves.high_watermark_moved()
        return True

    def _may_join(self, replica: RemoteReplica) -> bool:
        around = self.surroundings
        end, now_ms = self.log.log_end_offset, around.clock.now_ms()
        return replica.is_caught_up(end, now_ms, around.max_lag_ms) and around.is_alive(
            replica.broker_id
        )

    # --- as leader: followers --------------------------------------------------------------------

    def follower_fetched(
        self, replica: RemoteReplica, offset: int, log_start_offset: int, now_ms: int
    ) -> None:
        """A follower asked for `offset`: it has what lies before, and may be in sync now."""
        before = replica.log_end_offset
        low_watermark = replica.log_start_offset
        replica.fetched(offset, log_start_offset, now_ms, self.log.log_end_offset)
        if replica.broker_id not in self.maximal_isr:
            self._maybe_expand_isr(replica)
        if offset != before:
            self.maybe_advance_high_watermark()
        if log_start_offset != low_watermark:
            self.moves.high_watermark_moved()  # who deletes records waits for the low watermark

    def _maybe_expand_isr(self, replica: RemoteReplica) -> None:
        if (
            self.proposed_isr is None
            and is_in_sync(replica, self.log.high_watermark, self.epoch_start_offset)
            and self.surroundings.is_alive(replica.broker_id)
        ):
            self._propose((*self.state.isr, replica.broker_id))

    def maybe_shrink_isr(self) -> None:
        """Leave out those who have lagged for longer than `replica.lag.time.max.ms`."""
        if not self.followers or not self.is_leader or self.proposed_isr is not None:
            return
        lagging = out_of_sync_replicas(
            self.state.isr,
            self.followers.values(),
            self.log.log_end_offset,
            self.surroundings.clock.now_ms(),
            self.surroundings.max_lag_ms,
        )
        if lagging:
            logger.info(
                "shrinking ISR partition=%s isr=%s out_of_sync=%s high_watermark=%s "
                "log_end_offset=%s",
                self.name,
                self.state.isr,
                sorted(lagging),
                self.log.high_watermark,
                self.log.log_end_offset,
            )
            self._propose(tuple(member for member in self.state.isr if member not in lagging))

    def _propose(self, isr: tuple[int, ...]) -> None:
        self.proposed_isr = isr
        self.maximal_isr = frozenset((*self.state.isr, *isr))
        self.surroundings.propose_isr(self, isr)

    def isr_accepted(self, answer: LeaderAndIsr) -> None:
        """The controller wrote down an ISR for us; what comes from another epoch is old news."""
        if (
            answer.leader_epoch != self.state.leader_epoch
            or answer.partition_epoch < self.state.partition_epoch
        ):
            return
        self.state = replace(self.state, isr=answer.isr, partition_epoch=answer.partition_epoch)
        self._settle()
        logger.info(
            "ISR updated partition=%s isr=%s partition_epoch=%s",
            self.name,
            self.state.isr,
            self.state.partition_epoch,
        )
        self.maybe_advance_high_watermark()

    def isr_refused(self) -> None:
        """The controller surely did not change anything: back to the committed ISR."""
        self._settle()

    def _settle(self) -> None:
        self.proposed_isr = None
        self.maximal_isr = frozenset(self.state.isr)

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of all live replicas."""
        return low_watermark_of(
            self.log.log_start_offset, self.followers.values(), self.surroundings.is_alive
        )

    def maybe_tell_log_start_offset(self) -> None:
        """Let sessions look again if retention has deleted something since the last call."""
        if self.log.log_start_offset != self._told_log_start_offset:
            self._told_log_start_offset = self.log.log_start_offset
            self.moves.high_watermark_moved()

    def delete_records(self, before: int | None) -> int:
        """Forget the records before an offset (None: before the high watermark); that offset.

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
        if self.log.maybe_increment_log_start_offset(offset):
            self.moves.high_watermark_moved()
        return offset

    # --- reading ---------------------------------------------------------------------------------

    def divergence(self, last_fetched_epoch: int, offset: int) -> tuple[int, int] | None:
        """Where a reader's log parts from ours: (epoch, its end here); None if it does not.

        The reader's last record before `offset` is of `last_fetched_epoch` (KIP-595).
        OffsetOutOfRange where that cannot be told.
        """
        found = self.log.end_offset_for_epoch(last_fetched_epoch)
        if found is None:
            raise OffsetOutOfRange(f"{self.name}: nothing is known of epoch {last_fetched_epoch}")
        if offset < self.log.log_start_offset:
            raise OffsetOutOfRange(
                f"{self.name}: offset {offset} is below {self.log.log_start_offset}"
            )
        epoch, end_offset = found
        return found if epoch < last_fetched_epoch or end_offset < offset else None

    # --- as follower -----------------------------------------------------------------------------

    def append_as_follower(self, records: BytesLike) -> None:
        """Append the leader's batches as they are.

        The first batch may begin before the log, where the leader's log start offset lies inside
        of it: then an empty log begins with that batch.
        """
        log = self.log
        try:
            log.append_as_follower(records)
        except UnexpectedAppendOffset as error:
            end = log.log_end_offset
            if log.log_start_offset != end or not error.first_offset < end <= error.last_offset:
                raise
            log.truncate_fully_and_start_at(error.first_offset, end)
            log.append_as_follower(records)

    def follow(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over the leader's high watermark and log start offset, as far as our log goes."""
        log = self.log
        self.leader_high_watermark = high_watermark
        offset = min(high_watermark, log.log_end_offset)
        if offset > log.high_watermark:
            log.update_high_watermark(offset)
            self.moves.high_watermark_moved()
        if log_start_offset > log.log_start_offset:
            log.maybe_increment_log_start_offset(log_start_offset)

    # --- the controller's word -------------------------------------------------------------------

    def become(self, state: LeaderAndIsr) -> bool:
        """Take up the controller's decision; whether a new leader epoch began.

        One that is older than what is known, because the controller answered AlterPartition
        meanwhile, is left out.
        """
        if state.partition_epoch < self.state.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.state.leader_epoch
        was_leader = self.is_leader
        self.state = state
        self._settle()
        if self.is_leader:
            self._lead(is_new_epoch=is_new_epoch, is_new_leader=not was_leader)
        else:
            self.followers = {}
        self.moves.wake()
        return is_new_epoch

    def retire(self) -> None:
        """There is no replica here any more: whoever waits for it need not."""
        self.state = replace(self.state, leader=NO_LEADER)
        self.followers = {}
        self._settle()
        self.moves.wake()

    def _lead(self, *, is_new_epoch: bool, is_new_leader: bool) -> None:
        others = [broker for broker in self.state.replicas if broker != self.broker_id]
        known = {} if is_new_leader else self.followers
        self.followers = {broker: known.get(broker) or RemoteReplica(broker) for broker in others}
        if is_new_epoch:
            self._begin_epoch(is_new_leader=is_new_leader)
        self.maybe_advance_high_watermark()

    def _begin_epoch(self, *, is_new_leader: bool) -> None:
        end = self.log.log_end_offset
        self.log.assign_epoch_start_offset(self.state.leader_epoch, end)
        self.epoch_start_offset = end
        now_ms = self.surroundings.clock.now_ms()
        for replica in self.followers.values():
            replica.begin_epoch(
                now_ms,
                end,
                is_new_leader=is_new_leader,
                is_in_sync=replica.broker_id in self.state.isr,
            )
