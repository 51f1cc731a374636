"""Who leads when the leader is gone."""

import pytest

from broker.controller.election import elect_if_offline
from broker.metadata_cache import NO_LEADER
from broker.model import LeaderAndIsr


def state(leader: int, isr: tuple[int, ...], leader_epoch: int = 4) -> LeaderAndIsr:
    return LeaderAndIsr(leader, leader_epoch, isr, replicas=(3, 1, 2))


@pytest.mark.parametrize("allow_unclean", [False, True])
def test_live_leader_stays_in_its_epoch(allow_unclean: bool) -> None:
    led = state(1, (1, 2))
    assert elect_if_offline(led, {1}, allow_unclean=allow_unclean) is led


@pytest.mark.parametrize("allow_unclean", [False, True])
def test_first_live_replica_in_sync_leads_and_the_dead_leave_the_isr(allow_unclean: bool) -> None:
    elected = elect_if_offline(state(3, (2, 3, 1)), {1, 2}, allow_unclean=allow_unclean)
    assert elected == state(1, (2, 1), leader_epoch=5)


def test_replica_that_is_not_in_sync_leads_only_where_records_may_be_lost() -> None:
    lost = state(3, (3,))
    assert elect_if_offline(lost, {2}, allow_unclean=True) == state(2, (2,), leader_epoch=5)
    assert elect_if_offline(lost, {2}, allow_unclean=False) == state(NO_LEADER, (3,), 5)


def test_partition_without_leader_stays_as_it_is_while_nobody_can_lead() -> None:
    unled = state(NO_LEADER, (3,))
    assert elect_if_offline(unled, {2, 7}, allow_unclean=False) is unled


def test_partition_that_was_never_led_begins_with_epoch_0() -> None:
    new = state(NO_LEADER, (3, 1, 2), leader_epoch=-1)
    assert elect_if_offline(new, {1}, allow_unclean=False) == state(1, (1,), leader_epoch=0)
