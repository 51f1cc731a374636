"""Random appends, fetches, ISR changes and elections: no acknowledged record is ever lost.

Three replicas with real logs; every fetch and every decision is one step. The model is a list
of what was acknowledged with acks=all, and of what consumers were shown. The controller of this
test follows the one rule that safety rests on: only a member of the ISR becomes leader.
"""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.manager import LogManager
from broker.log.offsets import FetchIsolation
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.replica.environment import ReplicaEnvironment
from broker.replica.follower_state import FollowerState, truncate, truncation_offset
from broker.replica.partition import Partition
from broker.replica.reevaluation import Event
from tests.log.support import batch

NAME = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"the topic's id..")
IDS = (1, 2, 3)
LAG_MS = 100
SEGMENT_BYTES = 1000
VALUES = st.lists(st.binary(max_size=3), min_size=1, max_size=3)


class Replicas(RuleBasedStateMachine):
    """One partition on three brokers.

    Field `acknowledged`: values by offset that were acknowledged with acks=all.
    Field `asked`: the proposed ISR to which the controller has not responded.
    """

    @initialize()
    def make(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.clock = ManualClock(1_700_000_000_000)
        self.asked: tuple[Partition, tuple[int, ...]] | None = None
        self.acknowledged: dict[int, bytes] = {}
        self.appended: list[tuple[int, int, bytes]] = []
        self.dead: set[int] = set()
        self.high_watermarks = dict.fromkeys(IDS, 0)
        self.told: dict[int, int] = dict.fromkeys(IDS, -1)
        self.state = LeaderAndIsr(1, 0, IDS, IDS, 0)
        self.replicas = {broker_id: self._replica(broker_id) for broker_id in IDS}
        for broker_id in IDS:
            self._tell(broker_id)

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            try:
                self.recover()
            finally:
                self.directory.cleanup()

    def recover(self) -> None:
        """When faults stop: every replica joins the ISR, and everything is committed."""
        for broker_id in tuple(self.dead):
            self.come_back(broker_id)
        self.elect(self.state.leader)
        for _ in range(4):
            for broker_id in IDS:
                self.hear(broker_id)
                self.catch_up(broker_id)
                if self.asked is not None:
                    self.answer_isr(is_lost=False)
        log = self.leader.log
        assert set(self.state.isr) == set(self.leader.state.isr) == set(IDS)
        assert log.high_watermark == log.log_end_offset
        assert not self.appended
        self.no_wakeup_was_missed()

    def _replica(self, broker_id: int) -> Partition:
        path = Path(self.directory.name) / str(broker_id)
        config = LogConfig(segment_bytes=SEGMENT_BYTES)
        logs = LogManager([path], lambda _: config, LogEnvironment(clock=self.clock))
        logs.startup()
        environment = ReplicaEnvironment(
            self.clock, LAG_MS, lambda broker_id: broker_id not in self.dead, self._propose
        )
        unknown = LeaderAndIsr(-1, -1, (), ())
        log = logs.get_or_create(NAME, TOPIC_ID)
        return Partition(NAME, TOPIC_ID, broker_id, log, unknown, 2, environment)

    def _propose(self, partition: Partition, isr: tuple[int, ...]) -> None:
        self.asked = (partition, isr)

    @property
    def leader(self) -> Partition:
        """The leader that the controller has elected; that broker may not know it yet."""
        return self.replicas[self.state.leader]

    # --- rules -----------------------------------------------------------------------------------

    @rule(values=VALUES)
    def append(self, values: list[bytes]) -> None:
        """A producer writes to the leader."""
        self._append(self.state.leader, values)

    @rule(broker_id=st.sampled_from(IDS), values=VALUES)
    def append_anywhere(self, broker_id: int, values: list[bytes]) -> None:
        """A producer writes to any broker: a former leader may not know of its successor."""
        self._append(broker_id, values)

    def _append(self, broker_id: int, values: list[bytes]) -> None:
        partition = self.replicas[broker_id]
        try:
            info = partition.append_as_leader(batch(*values), required_acks=-1)
        except ApiError as error:
            assert error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        for index, value in enumerate(values):
            self.appended.append((broker_id, info.first_offset + index, value))
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Acknowledge the records that are committed now."""
        waiting = []
        for broker_id, offset, value in self.appended:
            code = self.replicas[broker_id].acks_reached(offset + 1)
            if code is None:
                waiting.append((broker_id, offset, value))
            elif code == ErrorCode.NONE:
                self.acknowledged[offset] = value
        self.appended = waiting

    @rule(broker_id=st.sampled_from(IDS))
    def catch_up(self, broker_id: int) -> None:
        """A follower fetches until there is no more, and its leader knows."""
        for _ in range(20):
            before = self.replicas[broker_id].log.log_end_offset
            self.fetch(broker_id, SEGMENT_BYTES)
            if self.replicas[broker_id].log.log_end_offset == before:
                break

    @rule(broker_id=st.sampled_from(IDS), max_bytes=st.integers(1, 400))
    def fetch(self, broker_id: int, max_bytes: int) -> None:
        """A follower fetches once, from the leader that it knows."""
        follower = self.replicas[broker_id]
        if follower.is_leader or follower.state.leader < 0:
            return
        leader, state = self.replicas[follower.state.leader], FollowerState(follower)
        if state.last_fetched_epoch < 0:
            truncate(follower, None, follower.log.high_watermark)
            state.refresh()
        try:
            leader.check_leader(state.leader_epoch)
            known = leader.follower(broker_id, state.leader_epoch)
            diverging = None
            if state.last_fetched_epoch >= 0:
                diverging = leader.divergence(state.last_fetched_epoch, state.fetch_offset)
            if diverging is not None:
                truncate(follower, None, truncation_offset(follower.log, *diverging))
                return
            found = leader.log.read(
                state.fetch_offset, max_bytes, FetchIsolation.LOG_END, min_one_message=True
            )
        except ApiError as error:
            assert error.code in (
                ErrorCode.FENCED_LEADER_EPOCH,
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            )
            return
        leader.follower_fetched(
            known, state.fetch_offset, state.log_start_offset, self.clock.now_ms()
        )
        if found.records is not None:
            follower.append_as_follower(found.records.read())
        follower.update_watermarks_from_leader(
            leader.log.high_watermark, leader.log.log_start_offset
        )
        self._acknowledge()

    @rule(milliseconds=st.sampled_from([LAG_MS // 2, LAG_MS + 1]))
    def time_passes(self, milliseconds: int) -> None:
        """Followers that do not fetch begin to lag."""
        self.clock.advance(milliseconds)
        for partition in self.replicas.values():
            partition.reevaluate_on_timer()

    @precondition(lambda self: self.asked is not None)
    @rule(is_lost=st.booleans())
    def answer_isr(self, is_lost: bool) -> None:
        """The controller accepts an ISR change, unless it is of an older epoch.

        Its answer may be lost: then the leader goes on in doubt.
        """
        assert self.asked is not None
        (partition, isr), self.asked = self.asked, None
        if partition.proposed_isr is not isr:
            return
        known = partition.state
        if (known.leader, known.leader_epoch, known.partition_epoch) != (
            self.state.leader,
            self.state.leader_epoch,
            self.state.partition_epoch,
        ):
            return
        self.state = LeaderAndIsr(
            self.state.leader, self.state.leader_epoch, isr, IDS, self.state.partition_epoch + 1
        )
        if not is_lost:
            partition.isr_accepted(self.state)
            self._acknowledge()

    @precondition(lambda self: self.asked is not None)
    @rule()
    def refuse_isr(self) -> None:
        """The controller refuses an ISR change: a new member is shutting down, for example."""
        assert self.asked is not None
        (partition, isr), self.asked = self.asked, None
        if partition.proposed_isr is isr:
            partition.isr_refused()
            self._acknowledge()

    @rule(broker_id=st.sampled_from(IDS))
    def die(self, broker_id: int) -> None:
        """A broker is removed from the live ones; what it still does is not known to others."""
        self.dead.add(broker_id)
        self._live_brokers_changed()

    @rule(broker_id=st.sampled_from(IDS))
    def come_back(self, broker_id: int) -> None:
        """A broker is live again."""
        self.dead.discard(broker_id)
        self._live_brokers_changed()

    def _live_brokers_changed(self) -> None:
        for partition in self.replicas.values():
            partition.reevaluate(Event.LIVE_BROKERS)
        self._acknowledge()

    @rule(broker_id=st.sampled_from(IDS))
    def elect(self, broker_id: int) -> None:
        """Elect a member of the ISR; the previous leader counts as dead."""
        if broker_id not in self.state.isr:
            return
        isr = self.state.isr
        if broker_id != self.state.leader and len(isr) > 1:
            isr = tuple(member for member in isr if member != self.state.leader)
        self.state = LeaderAndIsr(
            broker_id, self.state.leader_epoch + 1, isr, IDS, self.state.partition_epoch + 1
        )
        self._tell(broker_id)

    @rule(broker_id=st.sampled_from(IDS))
    def hear(self, broker_id: int) -> None:
        """A broker receives the latest decision."""
        self._tell(broker_id)

    def _tell(self, broker_id: int) -> None:
        if self.told[broker_id] < self.state.leader_epoch:
            self.told[broker_id] = self.state.leader_epoch
            self.replicas[broker_id].become_leader_or_follower(self.state)
            self._acknowledge()

    # --- invariants ------------------------------------------------------------------------------

    @invariant()
    def every_member_of_the_isr_has_what_was_acknowledged(self) -> None:
        if not hasattr(self, "replicas") or not self.acknowledged:
            return
        for member in self.state.isr:
            found = _values(self.replicas[member])
            for offset, value in self.acknowledged.items():
                assert found.get(offset) == value, f"{offset} is lost on {member}"

    @invariant()
    def no_wakeup_was_missed(self) -> None:
        for partition in getattr(self, "replicas", {}).values():
            assert partition.environment.num_missed_wakeups == 0

    @invariant()
    def committed_records_are_the_same_everywhere(self) -> None:
        if not hasattr(self, "replicas"):
            return
        values = {broker_id: _values(p) for broker_id, p in self.replicas.items()}
        for broker_id, partition in self.replicas.items():
            committed = min(partition.log.high_watermark, self.leader.log.high_watermark)
            for offset in range(committed):
                assert values[broker_id][offset] == values[self.state.leader][offset]


def _values(partition: Partition) -> dict[int, bytes | None]:
    log = partition.log
    return {
        row[0]: row[3]
        for segment in log.segments
        for _, found in segment.log.batches()
        for row in found.record_tuples()
    }


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
