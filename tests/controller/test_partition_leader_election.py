"""The four elections, on any combination of live replicas, ISR and assignment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.leadership import Leadership
from broker.controller.partition_leader_election import Candidates, ElectionStrategy, elect
from broker.controller.replica_assignment import reassign_to, target_of
from broker.metadata.znodes.topics import ReplicaAssignment
from broker.model import NO_LEADER

OFFLINE, UNCLEAN, REASSIGN, PREFERRED, SHUTDOWN = ElectionStrategy


def state(leader: int, isr: tuple[int, ...], leader_epoch: int = 4) -> Leadership:
    return Leadership(leader, leader_epoch, isr, partition_epoch=7, controller_epoch=2)


def candidates(
    online: set[int], allow_unclean: bool = False, shutting_down: set[int] | None = None
) -> Candidates:
    assignment = ReplicaAssignment((3, 1, 2))
    return Candidates(assignment, online, shutting_down or set(), allow_unclean)


@pytest.mark.parametrize("allow_unclean", [False, True])
def test_first_live_isr_member_leads_and_dead_ones_leave_the_isr(allow_unclean: bool) -> None:
    elected = elect(OFFLINE, state(3, (2, 3, 1)), candidates({1, 2}, allow_unclean))
    assert elected is not None
    assert elected.leadership == state(1, (2, 1), leader_epoch=5)
    assert elected.recipients == (1, 2)


def test_replica_outside_the_isr_leads_only_if_unclean_is_allowed() -> None:
    lost = state(3, (3,))
    assert elect(OFFLINE, lost, candidates({2})) is None
    for strategy, allowed in ((OFFLINE, True), (UNCLEAN, False)):
        elected = elect(strategy, lost, candidates({2}, allowed))
        assert elected is not None
        assert elected.leadership.leader == 2
        assert elected.leadership.isr == (2,)
        assert elected.leadership.is_recovering


def test_there_is_no_leader_while_all_replicas_are_dead() -> None:
    for strategy in ElectionStrategy:
        assert elect(strategy, state(3, (3, 1)), candidates(set(), allow_unclean=True)) is None


def test_preferred_leader_must_be_alive_and_in_sync() -> None:
    assert elect(PREFERRED, state(1, (1, 2)), candidates({1, 2, 3})) is None
    assert elect(PREFERRED, state(1, (1, 3)), candidates({1, 2})) is None
    elected = elect(PREFERRED, state(1, (1, 3)), candidates({1, 2, 3}))
    assert elected is not None
    assert elected.leadership == state(3, (1, 3), leader_epoch=5)
    assert elected.recipients == (3, 1, 2)


def test_broker_that_shuts_down_is_replaced_by_an_isr_member_and_leaves_the_isr() -> None:
    led = state(3, (3, 1, 2))
    elected = elect(SHUTDOWN, led, candidates({1, 2}, shutting_down={3}))
    assert elected is not None
    assert elected.leadership == state(1, (1, 2), leader_epoch=5)
    assert elected.recipients == (3, 1, 2)
    assert elect(SHUTDOWN, state(3, (3,)), candidates({1, 2}, shutting_down={3})) is None


IDS = st.integers(0, 5)
REPLICAS = st.lists(IDS, min_size=1, max_size=4, unique=True).map(tuple)


@given(
    strategy=st.sampled_from(ElectionStrategy),
    replicas=REPLICAS,
    target=REPLICAS,
    online=st.frozensets(IDS),
    leaving=st.frozensets(IDS),
    data=st.data(),
)
def test_elected_leader_is_online_in_the_isr_and_in_a_higher_epoch(
    strategy: ElectionStrategy,
    replicas: tuple[int, ...],
    target: tuple[int, ...],
    online: frozenset[int],
    leaving: frozenset[int],
    data: st.DataObject,
) -> None:
    assignment = reassign_to(ReplicaAssignment(replicas), target)
    isr = data.draw(st.lists(st.sampled_from(assignment.replicas), min_size=1, unique=True))
    leader = data.draw(st.sampled_from([NO_LEADER, *assignment.replicas]))
    before = state(leader, tuple(isr))
    elected = elect(strategy, before, Candidates(assignment, online - leaving, leaving))
    eligible = set(assignment.replicas) & (online - leaving)
    if elected is None:
        # No replica has all records, unless only certain replicas were eligible.
        if strategy in (OFFLINE, SHUTDOWN):
            assert not eligible & set(isr)
        return
    new = elected.leadership
    assert new.leader in eligible
    assert new.leader in new.isr
    assert new.leader_epoch == before.leader_epoch + 1
    assert set(elected.recipients) <= set(assignment.replicas)
    assert new.is_recovering == (new.leader not in isr)
    assert new.is_recovering or set(new.isr) <= set(isr)
    if strategy is REASSIGN:
        assert new.leader in target_of(assignment)


@given(leader=IDS, isr=REPLICAS, gone=IDS)
def test_the_last_member_of_an_isr_stays_but_does_not_lead(
    leader: int, isr: tuple[int, ...], gone: int
) -> None:
    after = state(leader, isr).without(gone)
    assert after.leader == (NO_LEADER if leader == gone else leader)
    assert after.isr
    assert set(after.isr) == (set(isr) - {gone} or set(isr))
