"""One replica of a partition on this broker: its role, the ISR, the high watermark, and its log.

The controller decides which replica leads. The leader decides which replicas are in sync, but it
only proposes: the controller commits the ISR. Until the controller has responded to AlterPartition,
the leader must be right with either outcome (KIP-497):

    state       ISR for min.insync.replicas     maximal ISR, for the high watermark
    committed   the committed one               the committed one
    expanding   the committed one               the committed one and the new member
    shrinking   the committed one               the committed one

So a member counts for the high watermark as soon as it may be in the ISR and as long as it may be,
but helps to satisfy `min.insync.replicas` only once the controller has committed it.

What happens to a partition is an `Event`; what has to be computed again after it is listed in the
table of `reevaluation` and nowhere else.

Everything here runs on the event loop, so no lock guards it. The log has its own lock.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from broker.errors import ApiError, ErrorCode, NotLeaderOrFollower, OffsetOutOfRange
from broker.log.append import AppendOrigin, LogAppendInfo, UnexpectedAppendOffset
from broker.log.partition_log import PartitionLog
from broker.log.producer_state import VerificationGuard
from broker.log.truncation import truncate_fully_and_start_at
from broker.metrics.topic_stats import TopicStats
from broker.model import NO_LEADER, LeaderAndIsr, TopicPartition, Uuid
from broker.records.layout import BytesLike
from broker.replica import state_change
from broker.replica.environment import ReplicaEnvironment
from broker.replica.in_sync import (
    FetchTimes,
    RemoteReplica,
    high_watermark_of,
    is_in_sync,
    low_watermark_of,
    out_of_sync_replicas,
)
from broker.replica.reevaluation import REEVALUATION, Event, Result
from broker.replica.watchers import Watchers, heal_fetches

ANY_EPOCH = -1
"""A client that does not know the leader epoch sends this; a negative one is not checked."""
_NO_MEMBERS: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Partition:
    """One replica of a partition, on this broker.

    It begins as neither leader nor follower and learns its role from the first LeaderAndIsr request
    that contains it. As a leader it appends what clients produce, learns from the fetches of its
    followers how far they are, and derives the ISR and the high watermark from that. As a
    follower it appends what the leader sends and takes over the leader's high watermark.
    """

    name: TopicPartition
    topic_id: Uuid
    broker_id: int
    log: PartitionLog
    state: LeaderAndIsr
    """What the controller has committed. Invariant: leader and partition epoch never go back."""
    min_insync_replicas: int = 1
    environment: ReplicaEnvironment = field(default_factory=ReplicaEnvironment)
    watchers: Watchers = field(default_factory=Watchers)
    """Delayed operations and fetch sessions that are notified when the partition changes."""
    followers: dict[int, RemoteReplica] = field(default_factory=dict)
    """The other replicas. Invariant: empty unless this broker leads."""
    proposed_isr: tuple[int, ...] | None = None
    """The ISR in an AlterPartition request without a response yet; None if there is no request."""
    maximal_isr: frozenset[int] = _NO_MEMBERS
    """The replicas that must have a record before it is committed. Invariant: contains the ISR."""
    leader_high_watermark: int = 0
    """As a follower: what the leader last reported. Ours is lower if our log ends before it."""
    epoch_start_offset: int = 0
    """As a leader: the log end offset at the start of the present leader epoch."""
    stats: TopicStats = field(init=False)
    """Traffic of the topic, shared by its partitions."""
    _fetching: RemoteReplica | None = None
    """The follower whose fetch is being evaluated; None outside of `follower_fetched`."""
    _reported_log_start_offset: int = 0
    """The log start offset that fetch sessions were last notified of."""

    def __post_init__(self) -> None:
        self.stats = self.environment.topic_stats.of(self.name.topic)

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads the partition."""
        return self.state.leader == self.broker_id

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, but at most the number of replicas."""
        return min(self.min_insync_replicas, len(self.state.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        """Whether the ISR is too small for acks=all."""
        in_sync = len(self.state.isr)
        return in_sync < self.min_insync_replicas and in_sync < len(self.state.replicas)

    # --- checking requests -----------------------------------------------------------------------

    def check_leader(self, current_leader_epoch: int = ANY_EPOCH) -> None:
        """Raise unless this broker leads, in the leader epoch that the client knows (KIP-320)."""
        self.check_epoch(current_leader_epoch)
        if self.state.leader != self.broker_id:
            raise NotLeaderOrFollower(f"{self.name} is led by broker {self.state.leader}")

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Raise unless the leader epoch is the one that the client knows.

        A client with an older epoch has missed an election: FENCED_LEADER_EPOCH makes it refresh
        its metadata. A client with a newer one knows of an election that the controller has not
        announced to this broker yet: UNKNOWN_LEADER_EPOCH makes it retry.
        """
        if 0 <= current_leader_epoch != self.state.leader_epoch:
            is_old = current_leader_epoch < self.state.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise ApiError(
                code,
                f"{self.name}: the leader epoch is {self.state.leader_epoch}, "
                f"not {current_leader_epoch}",
            )

    def follower(self, replica_id: int, current_leader_epoch: int = ANY_EPOCH) -> RemoteReplica:
        """The state of a follower; an ApiError if that broker has no replica.

        If the follower names the right leader epoch, it knows an assignment that this broker does
        not know yet: UNKNOWN_LEADER_EPOCH makes it retry.
        """
        replica = self.followers.get(replica_id)
        if replica is None:
            message = f"{self.name} has no replica on broker {replica_id}"
            if current_leader_epoch >= 0:
                raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH, message)
            raise NotLeaderOrFollower(message)
        return replica

    # --- leader: appending -----------------------------------------------------------------------

    def append_as_leader(
        self,
        records: BytesLike,
        required_acks: int = -1,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification: VerificationGuard | None = None,
    ) -> LogAppendInfo:
        """Append and, if no follower has to fetch first, advance the high watermark.

        NOT_ENOUGH_REPLICAS for acks=all if the ISR is too small: nothing is written. HeavyBatch if
        the log must validate a client's batch in a thread first.
        """
        self.check_leader()
        if required_acks == -1 and self.is_under_min_isr:
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.name}: {len(self.state.isr)} in sync, "
                f"min.insync.replicas={self.min_insync_replicas}",
            )
        info = self.log.append_on_loop(records, self.state.leader_epoch, origin, verification)
        if self.log.flush_is_due:
            self.environment.request_flush(self)
        stats = self.stats
        stats.produce_requests += 1
        stats.bytes_in += len(records)
        stats.messages_in += info.last_offset - info.first_offset + 1
        # The fetches that idle sessions repeat asked for the previous log end: now they lag.
        for replica in self.followers.values():
            if replica.idle_session is not None:
                replica.end_idle()
        for reevaluate in _ON_APPEND:
            reevaluate(self)
        return info

    def acks_reached(self, offset: int, required_acks: int = -1) -> ErrorCode | None:
        """The error code for records below `offset`; None while the producer must wait.

        A. not the leader any more: the new leader decides whether the records survive;
        B. every member of the ISR has them: success, or an error if the ISR is now too small;
        C. some do not have them: wait;
        D. acks=1 waits only for a flush that `flush.messages` requires.

        In case B the records are committed and stay, also if the result is an error: the client may
        retry, and only an idempotent producer's retry is recognized as a duplicate.
        """
        if not self.is_leader:  # A
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if required_acks != -1:  # D
            return ErrorCode.NONE if self._is_flushed(offset) else None
        if self.log.high_watermark < offset:  # C
            return None
        if len(self.maximal_isr) < self.effective_min_isr:  # B
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def _is_flushed(self, offset: int) -> bool:
        """Whether `flush.messages` allows to acknowledge records below `offset`."""
        return not self.log.flush_is_due or self.log.flushed_end_offset >= offset

    # --- leader: re-evaluation -------------------------------------------------------------------

    def reevaluate(self, event: Event) -> None:
        """Compute again what depends on the event; see `reevaluation` for the table."""
        for reevaluate in _REACTIONS[event]:
            reevaluate(self)

    def reevaluate_on_timer(self) -> None:
        """Compute everything again, because time has passed; heal missed wake-ups and count them.

        A missed wake-up is a change for which time is not the reason: an event should have made it.
        """
        for result, heal in _ON_TIMER:
            num_missed = heal(self)
            if num_missed:
                self.environment.num_missed_wakeups += num_missed
                state_change.missed_wakeups(self, result, num_missed)

    def maybe_advance_high_watermark(self) -> bool:
        """Raise the high watermark to the smallest log end offset of the replicas that count.

        It does not move while the ISR is smaller than `min.insync.replicas` (KIP-966): otherwise a
        leader that is alone could commit records that are lost with it.
        Invariant: log_start_offset <= high_watermark <= log_end_offset.
        """
        if self.state.leader != self.broker_id or self.is_under_min_isr:
            return False
        log = self.log
        offset = log.log_end_offset
        if log.flush_is_due:  # what consumers see and acks=all confirms must be flushed
            offset = log.flushed_end_offset
            self.environment.request_flush(self)
        if self.followers:
            offset = high_watermark_of(
                offset, self.followers.values(), self.maximal_isr, self._is_joining
            )
        if not log.maybe_increment_high_watermark(offset):
            return False
        for reevaluate in _ON_HIGH_WATERMARK:
            reevaluate(self)
        return True

    def _is_joining(self, replica: RemoteReplica) -> bool:
        """Whether a follower outside of the maximal ISR is about to join it.

        The high watermark waits for such a follower, because it can only join once it has reached
        the high watermark; a busy log would otherwise always be a step ahead of it.
        """
        environment = self.environment
        end, now_ms = self.log.log_end_offset, environment.clock.now_ms()
        return replica.is_caught_up(end, now_ms, environment.max_lag_ms) and environment.is_alive(
            replica.broker_id
        )

    def _heal_high_watermark(self) -> int:
        if not self.maybe_advance_high_watermark():
            return 0
        # A follower outside of the ISR that is passed over does not count any more. Either it was
        # caught up too long ago, then time is the reason, or its broker is dead, which is an event.
        high_watermark, end = self.log.high_watermark, self.log.log_end_offset
        now_ms, max_lag_ms = self.environment.clock.now_ms(), self.environment.max_lag_ms
        is_due_to_time = any(
            replica.log_end_offset < high_watermark
            and replica.broker_id not in self.maximal_isr
            and not replica.is_caught_up(end, now_ms, max_lag_ms)
            for replica in self.followers.values()
        )
        return 0 if is_due_to_time else 1

    def _check_operations(self) -> None:
        self.watchers.check_operations()

    def _wake_follower_fetches(self) -> None:
        self.watchers.log_end_advanced()

    def _wake_consumer_fetches(self) -> None:
        self.watchers.high_watermark_advanced()

    def _heal_operations(self) -> int:
        return self.watchers.heal_operations()

    def _heal_follower_fetches(self) -> int:
        return heal_fetches(self.watchers.followers)

    def _heal_consumer_fetches(self) -> int:
        return heal_fetches(self.watchers.consumers)

    # --- leader: followers and the ISR -----------------------------------------------------------

    def follower_fetched(
        self,
        replica: RemoteReplica,
        offset: int,
        log_start_offset: int,
        now_ms: int,
        session: FetchTimes | None = None,
    ) -> None:
        """A follower fetches from `offset`: it has everything below, and may be in sync now."""
        log_end_before, log_start_before = replica.log_end_offset, replica.log_start_offset
        replica.fetched(offset, log_start_offset, now_ms, self.log.log_end_offset, session)
        # Every fetch may make the follower a member of the ISR, also one from the same offset:
        # for example the first one after the controller refused it.
        self._fetching = replica
        for reevaluate in _ON_FOLLOWER_FETCH:
            reevaluate(self)
        self._fetching = None
        # The rest depends on the offsets, which an idle follower repeats.
        if offset != log_end_before:
            for reevaluate in _ON_FOLLOWER_LOG_END:
                reevaluate(self)
        if log_start_offset != log_start_before:
            self.reevaluate(Event.FOLLOWER_LOG_START)

    def maybe_expand_isr(self) -> None:
        """Propose to add the follower that fetches now, if it is in sync.

        Outside of a fetch, followers that are not in the ISR are examined at their next one.
        """
        replica = self._fetching
        if replica is None:
            self.watchers.read_at_next_fetch()
        elif (
            replica.broker_id not in self.maximal_isr
            and self.proposed_isr is None
            and is_in_sync(replica, self.log.high_watermark, self.epoch_start_offset)
            and self.environment.is_alive(replica.broker_id)
        ):
            isr = (*self.state.isr, replica.broker_id)
            state_change.expanding_isr(self, isr, replica)
            self._propose(isr)

    def maybe_shrink_isr(self) -> None:
        """Propose to remove members that have lagged longer than `replica.lag.time.max.ms`.

        There is one proposal at a time, because each names the partition epoch that it changes.
        """
        if not self.followers or not self.is_leader or self.proposed_isr is not None:
            return
        lagging = out_of_sync_replicas(
            self.state.isr,
            self.followers.values(),
            self.log.log_end_offset,
            self.environment.clock.now_ms(),
            self.environment.max_lag_ms,
        )
        if lagging:
            isr = tuple(member for member in self.state.isr if member not in lagging)
            state_change.shrinking_isr(self, isr)
            self._propose(isr)

    def _shrink_isr_on_timer(self) -> int:
        self.maybe_shrink_isr()
        return 0

    def _propose(self, isr: tuple[int, ...]) -> None:
        # The controller may have written the new ISR before its response arrives, and may elect a
        # leader from it. Until then the union of both counts: a record below the high watermark is
        # on every replica that can become leader, whichever of the two is the committed ISR.
        self.proposed_isr = isr
        self.maximal_isr = frozenset((*self.state.isr, *isr))
        self.environment.propose_isr(self, isr)

    def isr_accepted(self, answer: LeaderAndIsr) -> None:
        """The controller has committed an ISR; an answer from another leader epoch is ignored."""
        if (
            answer.leader_epoch != self.state.leader_epoch
            or answer.partition_epoch < self.state.partition_epoch
        ):
            return
        self._count_isr_change(len(answer.isr) - len(self.state.isr))
        self.state = replace(self.state, isr=answer.isr, partition_epoch=answer.partition_epoch)
        self._end_proposal()
        state_change.isr_updated(self)
        self.reevaluate(Event.ISR_ACCEPTED)

    def _count_isr_change(self, added: int) -> None:
        if added > 0:
            self.environment.num_isr_expands += 1
        elif added < 0:
            self.environment.num_isr_shrinks += 1

    def isr_refused(self) -> None:
        """The controller did not change anything: return to the committed ISR."""
        self.environment.num_failed_isr_updates += 1
        state_change.isr_refused(self)
        # Those whose addition failed. While they count as caught up the high watermark waits for
        # them, and one that has stopped fetching would hold it for replica.lag.time.max.ms.
        for broker_id in self.maximal_isr.difference(self.state.isr):
            self.followers[broker_id].refused()
        self._end_proposal()
        self.reevaluate(Event.ISR_REFUSED)

    def _end_proposal(self) -> None:
        self.proposed_isr = None
        self.maximal_isr = frozenset(self.state.isr)

    # --- log start offset ------------------------------------------------------------------------

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of all live replicas.

        DeleteRecords is complete when it has reached the requested offset: then no live replica
        can serve the deleted records, even if it becomes the leader.
        """
        return low_watermark_of(
            self.log.log_start_offset, self.followers.values(), self.environment.is_alive
        )

    def _report_log_start_offset(self) -> int:
        """Notify fetch sessions if retention has moved the log start offset since the last call."""
        if self.log.log_start_offset != self._reported_log_start_offset:
            self._reported_log_start_offset = self.log.log_start_offset
            self.reevaluate(Event.LOG_START)
        return 0

    def delete_records(self, before: int | None) -> int:
        """Delete the records before an offset (None: the high watermark); returns that offset.

        POLICY_VIOLATION unless `cleanup.policy` contains delete.
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
            self._report_log_start_offset()
        return offset

    # --- reading ---------------------------------------------------------------------------------

    def divergence(self, last_fetched_epoch: int, offset: int) -> tuple[int, int] | None:
        """Where a reader's log diverges from this one: (epoch, its end offset here), or None.

        The reader's last record before `offset` is of `last_fetched_epoch` (KIP-595).
        OffsetOutOfRange if the epochs known here do not tell.
        """
        found = self.log.end_offset_for_epoch(last_fetched_epoch)
        if found is None:
            raise OffsetOutOfRange(f"{self.name}: leader epoch {last_fetched_epoch} is not known")
        if offset < self.log.log_start_offset:
            raise OffsetOutOfRange(
                f"{self.name}: offset {offset} is below {self.log.log_start_offset}"
            )
        epoch, end_offset = found
        return found if epoch < last_fetched_epoch or end_offset < offset else None

    # --- follower --------------------------------------------------------------------------------

    def append_as_follower(self, records: BytesLike) -> None:
        """Append the leader's batches unchanged.

        The leader's log start offset may lie inside of a batch. Then the first batch begins before
        our empty log, and the log is started again at that batch.
        """
        log = self.log
        try:
            log.append_as_follower(records)
        except UnexpectedAppendOffset as error:
            end = log.log_end_offset
            if log.log_start_offset != end or not error.first_offset < end <= error.last_offset:
                raise
            truncate_fully_and_start_at(log, error.first_offset, end)
            log.append_as_follower(records)
        self.stats.replication_bytes_in += len(records)
        if self.broker_id in self.state.adding_replicas:
            self.stats.reassignment_bytes_in += len(records)

    def update_watermarks_from_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over the leader's high watermark and log start offset, limited to our log end.

        The high watermark never goes back here. A leader that was just elected may report a lower
        one than its predecessor until its followers have fetched from it.
        """
        log = self.log
        self.leader_high_watermark = high_watermark
        offset = min(high_watermark, log.log_end_offset)
        if offset > log.high_watermark:
            log.update_high_watermark(offset)
            for reevaluate in _ON_HIGH_WATERMARK:
                reevaluate(self)
        if log_start_offset > log.log_start_offset:
            log.maybe_increment_log_start_offset(log_start_offset)

    # --- decisions of the controller -------------------------------------------------------------

    def become_leader_or_follower(self, state: LeaderAndIsr) -> bool:
        """Apply a decision of the controller; returns whether a new leader epoch began.

        A decision older than what is known (the controller has answered AlterPartition meanwhile)
        is ignored. Any other ends our proposal: the controller has decided with or without it. A
        response that still arrives is judged by its epochs.
        """
        if state.partition_epoch < self.state.partition_epoch:
            return False
        previous, was_leader = self.state, self.is_leader
        is_new_epoch = state.leader_epoch > previous.leader_epoch
        self.state = state
        self._end_proposal()
        if self.is_leader:
            self._make_leader(is_new_epoch=is_new_epoch, is_new_leader=not was_leader)
        else:
            self.followers = {}  # only the leader knows them; their fetches go to it from now on
        state_change.became_leader_or_follower(self, previous)
        self.reevaluate(Event.LEADER_EPOCH)
        return is_new_epoch

    def remove(self) -> None:
        """This broker has no replica any more: complete what waits for it."""
        self.state = replace(self.state, leader=NO_LEADER)
        self.followers = {}
        self._end_proposal()
        self.reevaluate(Event.REMOVED)

    def _make_leader(self, *, is_new_epoch: bool, is_new_leader: bool) -> None:
        # A leader that continues keeps what it knows about its followers: a reassignment, for
        # example, changes the replicas but not how far the others are.
        others = [broker for broker in self.state.replicas if broker != self.broker_id]
        known = {} if is_new_leader else self.followers
        self.followers = {broker: known.get(broker) or RemoteReplica(broker) for broker in others}
        if is_new_epoch:
            self._begin_epoch(is_new_leader=is_new_leader)

    def _begin_epoch(self, *, is_new_leader: bool) -> None:
        # The log remembers where each epoch starts: followers compare it with their own logs and
        # truncate what they have beyond it (KIP-101). And a follower can join the ISR only after it
        # has reached this offset, because everything below may be committed.
        end = self.log.log_end_offset
        self.log.assign_epoch_start_offset(self.state.leader_epoch, end)
        self.epoch_start_offset = end
        now_ms = self.environment.clock.now_ms()
        for replica in self.followers.values():
            replica.begin_epoch(
                now_ms,
                end,
                is_new_leader=is_new_leader,
                is_in_sync=replica.broker_id in self.state.isr,
            )


_METHODS: Final[dict[Result, Callable[[Partition], object]]] = {
    Result.ISR_EXPANSION: Partition.maybe_expand_isr,
    Result.ISR_SHRINK: Partition.maybe_shrink_isr,
    Result.HIGH_WATERMARK: Partition.maybe_advance_high_watermark,
    Result.DELAYED_OPERATIONS: Partition._check_operations,
    Result.FOLLOWER_FETCHES: Partition._wake_follower_fetches,
    Result.CONSUMER_FETCHES: Partition._wake_consumer_fetches,
    Result.LOG_START: Partition._report_log_start_offset,
}
_REACTIONS: Final = {
    event: tuple(_METHODS[result] for result in results) for event, results in REEVALUATION.items()
}
# On the hot path, without the lookup of an enum member, which takes as long as several calls.
_ON_APPEND: Final = _REACTIONS[Event.APPEND]
_ON_FOLLOWER_FETCH: Final = _REACTIONS[Event.FOLLOWER_FETCH]
_ON_FOLLOWER_LOG_END: Final = _REACTIONS[Event.FOLLOWER_LOG_END]
_ON_HIGH_WATERMARK: Final = _REACTIONS[Event.HIGH_WATERMARK]

_TIMER_METHODS: Final[dict[Result, Callable[[Partition], int]]] = {
    Result.ISR_EXPANSION: Partition._heal_follower_fetches,
    Result.ISR_SHRINK: Partition._shrink_isr_on_timer,
    Result.HIGH_WATERMARK: Partition._heal_high_watermark,
    Result.DELAYED_OPERATIONS: Partition._heal_operations,
    Result.FOLLOWER_FETCHES: Partition._heal_follower_fetches,
    Result.CONSUMER_FETCHES: Partition._heal_consumer_fetches,
    Result.LOG_START: Partition._report_log_start_offset,
}
"""How the timer re-evaluates a result. Each returns the number of missed wake-ups."""
_ON_TIMER: Final = tuple((result, _TIMER_METHODS[result]) for result in REEVALUATION[Event.TIMER])
