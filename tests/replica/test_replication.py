"""Followers follow, the high watermark waits for the ISR, logs that parted are one again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from broker.api.fetch_session import FetchSessionCache
from broker.errors import ApiError, ErrorCode
from broker.replica.purgatory import Purgatory
from tests.replica.harness import NAME, InProcessCluster, cluster, wait_for

Scenario = Callable[[InProcessCluster], Awaitable[None]]


def run(directory: Path, scenario: Scenario, brokers: int = 3, **settings: str) -> None:
    """Run a scenario on brokers of its own."""
    texts = {key.replace("_", "."): value for key, value in settings.items()}

    async def within() -> None:
        async with asyncio.timeout(20), cluster(directory, brokers, texts) as made:
            await scenario(made)

    asyncio.run(within())


def test_followers_have_the_same_bytes_and_the_high_watermark_follows(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        for number in range(20):
            brokers[1].append(f"value {number}", "and another")
        await brokers.replicated(1, 40)
        for follower in (2, 3):
            await brokers.followed(follower, 40)
            assert brokers[follower].bytes() == brokers[1].bytes()

    run(tmp_path, scenario)


def test_followers_follow_a_leader_that_has_no_room_for_sessions(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers[1].services.fetch_sessions = FetchSessionCache(0, 1000, Purgatory())
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("value"))
        await brokers.replicated(1, brokers[1].append("and another"))

    run(tmp_path, scenario, brokers=2)


def test_high_watermark_waits_for_a_follower_in_the_isr(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.reachable.discard(3)
        await brokers.lead(1)
        end = brokers[1].append("value")
        partition = brokers[1].partition
        await wait_for(partition, lambda p: p.followers[2].log_end_offset == end)
        assert partition.log.high_watermark == 0
        assert partition.acks_reached(end) is None

    run(tmp_path, scenario, replica_lag_time_max_ms="30000")


def test_follower_that_lags_too_long_leaves_the_isr_and_comes_back(tmp_path: Path) -> None:
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

    run(tmp_path, scenario)


def test_what_only_a_dead_leader_had_is_cut_when_it_comes_back(tmp_path: Path) -> None:
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

    run(tmp_path, scenario)


def test_logs_that_parted_twice_are_made_the_same(tmp_path: Path) -> None:
    """KIP-279: two quick failures, after which epochs differ that both sides number alike."""

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

    run(tmp_path, scenario)


def test_follower_behind_the_leaders_start_begins_there(tmp_path: Path) -> None:
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

    run(tmp_path, scenario)


def test_acks_all_needs_as_many_in_sync_as_the_topic_asks_for(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.set_topic(min_insync_replicas="2")
        brokers.reachable = {1}
        await brokers.lead(1, isr=(1,))
        with pytest.raises(ApiError) as too_few:
            brokers[1].append("value", acks=-1)
        assert too_few.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        brokers[1].append("value", acks=1)
        # Kafka 3.9: nothing counts as replicated while too few are in sync.
        assert brokers[1].partition.log.high_watermark == 0

    run(tmp_path, scenario)


def test_isr_that_shrinks_after_the_append_is_told_to_the_producer(tmp_path: Path) -> None:
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

    run(tmp_path, scenario)


def test_refused_isr_change_leaves_the_committed_one(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers.isr_answer = ErrorCode.INELIGIBLE_REPLICA
        await brokers.lead(1, isr=(1, 2))
        await brokers.isr_changed.wait()
        leader = brokers[1].partition
        await wait_for(leader, lambda p: p.proposed_isr is None)
        assert (leader.state.isr, leader.maximal_isr) == ((1, 2), {1, 2})

    run(tmp_path, scenario)


def test_restarted_broker_knows_its_high_watermark(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        await brokers.replicated(1, brokers[1].append("a", "b"))
        await brokers.followed(2, 2)
        brokers[2].replicas.checkpoint_high_watermarks()
        again = brokers[2].replicas
        again.forget([NAME])
        again.load_high_watermarks()
        await brokers.lead(2)
        assert brokers[2].partition.log.high_watermark == 2

    run(tmp_path, scenario)
