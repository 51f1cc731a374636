"""The high watermark is computed again on every event that can change it, not only on appends.

In all of these tests the log does not grow after the event: an idempotent producer with a bounded
number of requests in flight sends nothing more until it is acknowledged.
"""

from pathlib import Path

from broker.errors import ErrorCode
from broker.replica.partition import Partition
from tests.support.in_process_cluster import InProcessCluster, run_in_cluster, wait_for


async def appended_and_fetched_by(brokers: InProcessCluster, follower: int) -> int:
    """Append a record and wait until the follower has it; returns the log end offset."""
    end = brokers[1].append("value")
    await wait_for(brokers[1].partition, lambda p: p.followers[follower].log_end_offset == end)
    return end


def test_refused_isr_expansion_advances_the_high_watermark(tmp_path: Path) -> None:
    """A refused replica stops counting at once: the controller refuses those that shut down."""

    async def scenario(brokers: InProcessCluster) -> None:
        brokers.controller_resumed.clear()
        brokers.isr_answer = ErrorCode.INELIGIBLE_REPLICA
        await brokers.lead(1, isr=(1, 2))
        leader = brokers[1].partition
        await brokers.isr_requested.wait()
        assert leader.maximal_isr == {1, 2, 3}
        brokers.pause(3)
        end = await appended_and_fetched_by(brokers, 2)
        assert leader.log.high_watermark == 0
        brokers.controller_resumed.set()
        await wait_for(leader, lambda p: p.log.high_watermark == end, timeout_s=3)

    run_in_cluster(tmp_path, scenario, replica_lag_time_max_ms="30000")


def test_fetches_of_an_older_leader_epoch_do_not_count_in_a_new_one(tmp_path: Path) -> None:
    """A replica leaves the ISR with a new leader epoch and fetches no more: a clean stop."""

    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        leader = brokers[1].partition
        await brokers.followed(3, brokers[1].append("value"))
        brokers.pause(3)
        await brokers.lead(1, isr=(1, 2))
        assert not brokers.isr_asked
        end = await appended_and_fetched_by(brokers, 2)
        await wait_for(leader, lambda p: p.log.high_watermark == end, timeout_s=3)

    run_in_cluster(tmp_path, scenario, replica_lag_time_max_ms="30000")


async def hold_back(brokers: InProcessCluster) -> Partition:
    """Let replica 3, outside of the ISR, hold the high watermark back by one record.

    It was caught up lately: its second fetch asks for the log end as it was at its first.
    """
    await brokers.lead(1, isr=(1, 2))
    brokers.pause(3)
    leader = brokers[1].partition
    replica = leader.followers[3]
    now_ms = brokers[1].services.clock.now_ms
    for _ in range(2):
        first = await appended_and_fetched_by(brokers, 2)
    leader.follower_fetched(replica, 0, 0, now_ms())
    await brokers.replicated(1, await appended_and_fetched_by(brokers, 2))
    leader.follower_fetched(replica, first, 0, now_ms())
    end = await appended_and_fetched_by(brokers, 2)
    assert (leader.log.high_watermark, leader.maximal_isr) == (end - 1, frozenset({1, 2}))
    return leader


def test_death_of_a_broker_advances_the_high_watermark(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        leader = await hold_back(brokers)
        brokers.reachable.discard(3)
        await brokers.tell_metadata(1, leader=1, isr=(1, 2), replicas=(1, 2, 3))
        assert leader.log.high_watermark == leader.log.log_end_offset

    run_in_cluster(tmp_path, scenario, replica_lag_time_max_ms="30000")


def test_death_of_a_broker_that_no_event_reports_is_a_missed_wakeup(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        leader = await hold_back(brokers)
        leader.environment.is_alive = lambda broker_id: broker_id != 3
        brokers[1].replicas.reevaluate_all()
        assert leader.log.high_watermark == leader.log.log_end_offset
        assert leader.environment.num_missed_wakeups == 1
        leader.environment.num_missed_wakeups = 0

    run_in_cluster(tmp_path, scenario, replica_lag_time_max_ms="30000")


def test_lag_time_of_a_replica_outside_the_isr_ends_with_the_timer(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        leader = await hold_back(brokers)
        leader.environment.max_lag_ms = -1
        brokers[1].replicas.reevaluate_all()
        assert leader.log.high_watermark == leader.log.log_end_offset

    run_in_cluster(tmp_path, scenario, replica_lag_time_max_ms="30000")


def test_smaller_min_insync_replicas_advances_the_high_watermark(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.set_topic(min_insync_replicas="2")
        brokers.reachable = {1}
        await brokers.lead(1, isr=(1,))
        end = brokers[1].append("value", acks=1)
        leader = brokers[1].partition
        assert leader.log.high_watermark == 0
        brokers.set_topic(min_insync_replicas="1")
        assert leader.log.high_watermark == end

    run_in_cluster(tmp_path, scenario)
