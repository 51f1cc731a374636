"""The table of re-evaluations is complete, is obeyed, and the timer heals what it would miss."""

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.api.fetch_session import FetchSessionPartition
from broker.replica import manager as manager_module
from broker.replica import partition as partition_module
from broker.replica.manager import ReplicaManager
from broker.replica.partition import Partition
from broker.replica.reevaluation import REEVALUATION, Event, Result
from tests.net.support import in_loop, until
from tests.support.in_process_cluster import InProcessCluster, run_in_cluster, wait_for


def test_every_event_has_a_row_and_the_timer_re_evaluates_everything() -> None:
    assert set(REEVALUATION) == set(Event)
    assert set(REEVALUATION[Event.TIMER]) == set(Result)
    assert all(results for results in REEVALUATION.values())


def test_every_result_is_re_evaluated_by_an_event_unless_only_time_changes_it() -> None:
    rows = {event: results for event, results in REEVALUATION.items() if event != Event.TIMER}
    by_event = {result for results in rows.values() for result in results}
    assert set(Result) - by_event == {Result.ISR_SHRINK, Result.LOG_START}


def test_partition_obeys_every_row() -> None:
    for event, results in REEVALUATION.items():
        expected = tuple(partition_module._METHODS[result] for result in results)
        assert partition_module._REACTIONS[event] == expected


async def replicated(brokers: InProcessCluster) -> Partition:
    """Two brokers in sync, with one record; the follower is idle and knows the high watermark."""
    await brokers.lead(1)
    await brokers.followed(2, brokers[1].append("value"))
    brokers.pause(2)
    return brokers[1].partition


def watcher_of(leader: Partition) -> FetchSessionPartition:
    (found,) = leader.watchers.followers
    assert isinstance(found, FetchSessionPartition)
    return found


def heal(brokers: InProcessCluster) -> int:
    """Run the timer; returns and resets the number of missed wake-ups."""
    environment = brokers[1].partition.environment
    before = environment.num_missed_wakeups
    brokers[1].replicas.reevaluate_all()
    found, environment.num_missed_wakeups = environment.num_missed_wakeups - before, before
    return found


def test_timer_has_nothing_to_heal_where_events_do_their_work(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await replicated(brokers)
        brokers[1].append("value")
        assert heal(brokers) == 0

    run_in_cluster(tmp_path, scenario, brokers=2, replica_lag_time_max_ms="30000")


def test_timer_advances_a_forgotten_high_watermark(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        leader = await replicated(brokers)
        end = brokers[1].append("value")
        leader.followers[2].log_end_offset = end  # without an event
        assert heal(brokers) == 1
        assert leader.log.high_watermark == end
        assert "missed wake-ups healed by the timer partition=orders-0" in caplog.text

    run_in_cluster(tmp_path, scenario, brokers=2, replica_lag_time_max_ms="30000")


def test_timer_wakes_a_session_that_does_not_know_of_records(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        leader = await replicated(brokers)
        brokers[1].append("value")
        watcher = watcher_of(leader)
        del watcher.session.pending[watcher]
        assert heal(brokers) >= 1
        assert watcher in watcher.session.pending

    run_in_cluster(tmp_path, scenario, brokers=2, replica_lag_time_max_ms="30000")


def test_timer_lets_a_forgotten_replica_rejoin_the_isr(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        leader = await replicated(brokers)
        leader.state = replace(leader.state, isr=(1,))  # without an event
        leader.maximal_isr = frozenset({1})
        watcher = watcher_of(leader)
        watcher.session.pending.pop(watcher, None)
        assert heal(brokers) == 1
        brokers.resume(2)
        await wait_for(leader, lambda p: set(p.state.isr) == {1, 2})

    run_in_cluster(tmp_path, scenario, brokers=2, replica_lag_time_max_ms="30000")


@in_loop
async def test_timer_lets_other_work_run_between_slices_of_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manager_module, "_PARTITIONS_PER_SLICE", 2)
    evaluated: list[int] = []
    partitions = [
        SimpleNamespace(reevaluate_on_timer=lambda number=number: evaluated.append(number))
        for number in range(5)
    ]
    manager = cast(Any, SimpleNamespace())
    manager._reevaluate_slices = lambda left: ReplicaManager._reevaluate_slices(manager, left)
    manager._reevaluate_slices(iter(partitions))
    assert evaluated == [0, 1]
    await asyncio.sleep(0)
    assert evaluated == [0, 1, 2, 3]
    await until(lambda: len(evaluated) == 5)
