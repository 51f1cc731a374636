"""Followers copy the leader, the high watermark waits for the ISR, diverged logs are truncated."""

import asyncio
from pathlib import Path

import pytest

from broker.api.fetch_session import FetchSessionCache
from broker.errors import ApiError, ErrorCode
from broker.log.checkpoints import read_offsets
from broker.log.layout import RECOVERY_POINT_CHECKPOINT
from tests.support.in_process_cluster import NAME, InProcessCluster, run_in_cluster, wait_for


def test_followers_have_the_same_bytes_and_the_high_watermark_follows(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        for number in range(20):
            brokers[1].append(f"value {number}", "and another")
        await brokers.replicated(1, 40)
        for follower in (2, 3):
            await brokers.followed(follower, 40)
            assert brokers[follower].bytes() == brokers[1].bytes()

    run_in_cluster(tmp_path, scenario)


def test_followers_fetch_from_a_leader_without_free_session_slots(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers[1].services.fetch_sessions = FetchSessionCache(
            0, 1000, brokers[1].replicas.purgatory
        )
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("value"))
        await brokers.replicated(1, brokers[1].append("and another"))

    run_in_cluster(tmp_path, scenario, brokers=2)


def test_high_watermark_waits_for_a_follower_in_the_isr(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.reachable.discard(3)
        await brokers.lead(1)
        end = brokers[1].append("value")
        partition = brokers[1].partition
        await wait_for(partition, lambda p: p.followers[2].log_end_offset == end)
        assert partition.log.high_watermark == 0
        assert partition.acks_reached(end) is None

    run_in_cluster(tmp_path, scenario, replica_lag_time_max_ms="30000")


def test_lagging_follower_leaves_the_isr_and_rejoins_it(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.reachable.discard(3)
        await brokers.lead(1)
        end = brokers[1].append("value")
        leader = brokers[1].partition
        await wait_for(leader, lambda p: p.followers[2].log_end_offset == end)
        await asyncio.sleep(0.45)  # replica.lag.time.max.ms
        leader.maybe_shrink_isr()
        await brokers.replicated(1, end)
        assert brokers.isr_asked == [(1, 2)]
        assert leader.state.isr == (1, 2)
        brokers.reachable.add(3)
        await brokers.lead(1, isr=(1, 2))
        await wait_for(leader, lambda p: set(p.state.isr) == {1, 2, 3})
        assert brokers[3].bytes() == brokers[1].bytes()

    run_in_cluster(tmp_path, scenario)


def test_regression_follower_that_catches_up_before_its_removal_rejoins_the_isr(
    tmp_path: Path,
) -> None:
    """The follower catches up while it is still in the ISR; then the removal is accepted.

    Nothing is appended afterwards: acks=all is refused, so only the fetches themselves can show
    the leader that the follower is in sync.
    """

    async def scenario(brokers: InProcessCluster) -> None:
        brokers.set_topic(min_insync_replicas="2")
        await brokers.lead(1)
        leader = brokers[1].partition
        await brokers.replicated(1, brokers[1].append("one"))
        brokers.pause(2)
        end = brokers[1].append("two")
        await asyncio.sleep(0.45)  # replica.lag.time.max.ms
        brokers.controller_resumed.clear()
        leader.maybe_shrink_isr()
        await brokers.isr_requested.wait()
        brokers.resume(2)
        await wait_for(leader, lambda p: p.followers[2].log_end_offset == end)
        assert leader.state.isr == (1, 2)
        brokers.controller_resumed.set()
        await wait_for(leader, lambda p: p.state.isr == (1,))
        await wait_for(leader, lambda p: set(p.state.isr) == {1, 2}, timeout_s=3)
        assert leader.log.high_watermark == end
        brokers[1].append("three", acks=-1)

    run_in_cluster(tmp_path, scenario, brokers=2)


def test_returning_leader_truncates_records_that_only_it_had(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("common"))
        brokers.reachable.discard(1)
        for number in range(3):
            brokers[1].append(f"lost {number}")
        await brokers.lead(2, isr=(2, 3))
        await brokers.replicated(2, brokers[2].append("kept", "kept as well"))
        brokers.reachable.add(1)
        await brokers.lead(2, isr=(2, 3))
        await brokers.followed(1, 3)
        assert brokers[1].bytes() == brokers[2].bytes() == brokers[3].bytes()

    run_in_cluster(tmp_path, scenario)


def test_regression_truncation_lowers_the_checkpointed_recovery_point(tmp_path: Path) -> None:
    """Otherwise a crash soon after would leave the records written since unchecked."""

    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("common"))
        brokers.reachable.discard(1)
        brokers[1].append("lost", "and flushed")
        log = brokers[1].partition.log
        log.flush()
        assert log.recovery_point == 3
        await brokers.lead(2, isr=(2, 3))
        await brokers.replicated(2, brokers[2].append("kept"))
        brokers.reachable.add(1)
        await brokers.lead(2, isr=(2, 3))
        await brokers.followed(1, 2)
        assert read_offsets(log.log_dir / RECOVERY_POINT_CHECKPOINT) == {NAME: 1}

    run_in_cluster(tmp_path, scenario)


def test_logs_that_diverged_twice_become_identical(tmp_path: Path) -> None:
    """KIP-279: after quick failovers each log has leader epochs that the other does not have."""

    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("common"))
        for leader in (1, 2, 1, 2):
            brokers.reachable = {leader}
            await brokers.lead(leader, isr=(leader,))
            brokers[leader].append(*(f"{leader} alone" for _ in range(leader + 1)))
        brokers.reachable = {1, 2, 3}
        await brokers.lead(1, isr=(1,))
        wanted = brokers[1].bytes()
        for follower in (brokers[2], brokers[3]):
            await wait_for(follower.partition, lambda _, log=follower: log.bytes() == wanted)

    run_in_cluster(tmp_path, scenario)


def test_follower_behind_the_leaders_log_start_offset_starts_there(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.reachable.discard(3)
        await brokers.lead(1, isr=(1, 2))
        for number in range(5):
            end = brokers[1].append(f"{number}")
        await brokers.replicated(1, end)
        brokers[1].partition.delete_records(3)
        brokers.reachable.add(3)
        await brokers.lead(1, isr=(1, 2))
        await brokers.followed(3, end)
        log = brokers[3].partition.log
        assert (log.log_start_offset, log.log_end_offset) == (3, 5)
        await wait_for(brokers[1].partition, lambda p: p.low_watermark == 3)

    run_in_cluster(tmp_path, scenario)


def test_acks_all_needs_min_insync_replicas(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.set_topic(min_insync_replicas="2")
        brokers.reachable = {1}
        await brokers.lead(1, isr=(1,))
        with pytest.raises(ApiError) as too_few:
            brokers[1].append("value", acks=-1)
        assert too_few.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        brokers[1].append("value", acks=1)
        # As in Kafka 3.9, nothing is committed while the ISR is too small.
        assert brokers[1].partition.log.high_watermark == 0

    run_in_cluster(tmp_path, scenario)


def test_producer_gets_an_error_if_the_isr_shrinks_after_the_append(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.set_topic(min_insync_replicas="2")
        await brokers.lead(1)
        end = brokers[1].append("value", acks=-1)
        await brokers.replicated(1, end)
        leader = brokers[1].partition
        assert leader.acks_reached(end) == ErrorCode.NONE
        await brokers.lead(1, isr=(1,))
        assert leader.acks_reached(end) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        await brokers.lead(2)
        assert leader.acks_reached(end) == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_in_cluster(tmp_path, scenario)


def test_refused_isr_change_leaves_the_committed_one(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.isr_answer = ErrorCode.INELIGIBLE_REPLICA
        await brokers.lead(1, isr=(1, 2))
        await brokers.isr_changed.wait()
        leader = brokers[1].partition
        await wait_for(leader, lambda p: p.proposed_isr is None)
        assert (leader.state.isr, leader.maximal_isr) == ((1, 2), frozenset({1, 2}))

    run_in_cluster(tmp_path, scenario)


def test_high_watermark_survives_a_restart(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("a", "b"))
        await brokers.followed(2, 2)
        brokers[2].replicas.checkpoint_high_watermarks()
        again = brokers[2].replicas
        again.remove_partitions([NAME])
        again.load_high_watermarks()
        await brokers.lead(2)
        assert brokers[2].partition.log.high_watermark == 2

    run_in_cluster(tmp_path, scenario)
