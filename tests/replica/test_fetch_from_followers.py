"""Fetches of followers: what ends their wait, and what they cost while nothing changes."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from broker.api.fetch_session import FetchSession
from broker.api.handlers import fetch
from broker.errors import ErrorCode
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tests.support.in_process_cluster import NAME, TOPIC_ID, InProcessCluster, cluster

Scenario = Callable[[InProcessCluster], Awaitable[None]]
VERSION = 17


def run(directory: Path, scenario: Scenario) -> None:
    """Run a scenario on a leader; the test is follower 2, and follower 3 never fetches."""

    async def within() -> None:
        async with asyncio.timeout(20), cluster(directory, brokers=3) as made:
            made.reachable = {1}
            await made.lead(1)
            await scenario(made)

    asyncio.run(within())


def asked(
    offset: int | None,
    session: tuple[int, int] = (0, 0),
    wait_ms: int = 0,
    min_bytes: int = 1,
    **others: Any,
) -> FetchRequest:
    """A follower's fetch; without an offset it names no partition."""
    partition = {"current_leader_epoch": 0, "partition_max_bytes": 1 << 20} | others
    topics = []
    if offset is not None:
        named = FetchPartition(partition=0, fetch_offset=offset, **partition)
        topics = [FetchTopic(topic_id=TOPIC_ID, partitions=[named])]
    return FetchRequest(
        replica_state=ReplicaState(replica_id=2, replica_epoch=7),
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
    )


async def answer(brokers: InProcessCluster, request: FetchRequest) -> FetchResponse:
    """The response of broker 1."""
    found = fetch.handle(request, brokers[1].context(VERSION))
    return found if isinstance(found, FetchResponse) else await found


def only(response: FetchResponse) -> PartitionData:
    """The only partition in a response."""
    ((data,),) = [topic.partitions for topic in response.responses]
    return data


def session_of(brokers: InProcessCluster, response: FetchResponse) -> FetchSession:
    sessions = brokers[1].services.fetch_sessions
    return cast(FetchSession, sessions._sessions[response.session_id])


def test_records_appended_just_before_the_wait_end_it(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        waiting = fetch.handle(asked(0, wait_ms=10_000), brokers[1].context(VERSION))
        assert not isinstance(waiting, FetchResponse)
        brokers[1].append("value")  # before anything awaits the response
        async with asyncio.timeout(2):
            assert len(only(await waiting).records or b"") > 0

    run(tmp_path, scenario)


def test_fetch_waits_until_there_are_min_bytes_and_gets_all_of_them(
    tmp_path: Path,
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        # More bytes than one of the batches below has.
        request = asked(0, wait_ms=10_000, min_bytes=100)
        waiting = asyncio.ensure_future(answer(brokers, request))
        await asyncio.sleep(0)
        brokers[1].append("value")
        await asyncio.sleep(0.01)
        assert not waiting.done()
        brokers[1].append("value")
        async with asyncio.timeout(2):
            assert only(await waiting).records is not None
        assert len(only(await waiting).records or b"") == len(brokers[1].bytes())

    run(tmp_path, scenario)


def test_cancelled_fetch_without_session_is_not_watched_any_more(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        watchers = brokers[1].partition.watchers
        waiting = asyncio.ensure_future(answer(brokers, asked(0, (0, -1), wait_ms=10_000)))
        await asyncio.sleep(0)
        assert watchers.followers
        waiting.cancel()
        await asyncio.wait([waiting])
        assert not watchers.followers

    run(tmp_path, scenario)


def test_high_watermark_alone_does_not_end_a_followers_wait_but_is_sent_at_its_end(
    tmp_path: Path,
) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1, isr=(1, 2))
        end = brokers[1].append("value")
        first = await answer(brokers, asked(0, current_leader_epoch=1))
        assert only(first).high_watermark == 0
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        request = asked(end, (first.session_id, 1), wait_ms=200, current_leader_epoch=1)
        told = only(await answer(brokers, request))
        assert loop.time() - started_s > 0.15
        assert (told.high_watermark, told.records) == (end, b"")

    run(tmp_path, scenario)


def test_idle_partition_is_not_read_again(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1, isr=(1, 2))
        first = await answer(brokers, asked(0, current_leader_epoch=1))
        session = session_of(brokers, first)
        assert len(session.partitions) == 1
        assert not session.pending
        empty = await answer(brokers, asked(None, (first.session_id, 1)))
        assert empty.responses == []
        brokers[1].append("value")
        assert len(session.pending) == 1
        told = await answer(brokers, asked(None, (first.session_id, 2)))
        assert len(only(told).records or b"") > 0

    run(tmp_path, scenario)


def test_follower_that_was_idle_is_caught_up_when_the_log_grows(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1, isr=(1, 2))
        first = await answer(brokers, asked(0, current_leader_epoch=1))
        await asyncio.sleep(0.3)
        await answer(brokers, asked(None, (first.session_id, 1)))
        await asyncio.sleep(0.3)
        brokers[1].append("value")  # replica.lag.time.max.ms=400 after the first fetch
        partition = brokers[1].partition
        partition.maybe_shrink_isr()
        assert partition.proposed_isr is None
        await asyncio.sleep(0.2)
        partition.maybe_shrink_isr()
        assert partition.proposed_isr == (1,)

    run(tmp_path, scenario)


def test_follower_in_another_epoch_or_without_a_replica_is_refused(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        await brokers.lead(1)
        fenced = only(await answer(brokers, asked(0)))
        assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (fenced.current_leader.leader_id, fenced.current_leader.leader_epoch) == (1, 1)
        early = only(await answer(brokers, asked(0, current_leader_epoch=9)))
        assert early.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        await brokers.lead(1, replicas=(1, 3))
        stranger = only(await answer(brokers, asked(0, current_leader_epoch=2)))
        assert stranger.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        nameless = only(await answer(brokers, asked(0, current_leader_epoch=-1)))
        assert nameless.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(tmp_path, scenario)


def test_follower_with_a_diverged_log_gets_the_diverging_epoch_at_once(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        brokers[1].append("one", "two")
        await brokers.lead(1)
        request = asked(7, current_leader_epoch=1, last_fetched_epoch=0, wait_ms=10_000)
        async with asyncio.timeout(2):
            data = only(await answer(brokers, request))
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
        assert not data.records
        assert brokers[1].partition.followers[2].log_end_offset == -1

    run(tmp_path, scenario)


def test_session_that_is_closed_watches_nothing(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        watchers = brokers[1].partition.watchers
        first = await answer(brokers, asked(0))
        assert watchers.followers
        await answer(brokers, asked(0, (first.session_id, -1)))
        assert not watchers.followers

    run(tmp_path, scenario)


def test_deleted_partition_ends_the_wait(tmp_path: Path) -> None:
    async def scenario(brokers: InProcessCluster) -> None:
        waiting = asyncio.create_task(answer(brokers, asked(0, wait_ms=10_000)))
        await asyncio.sleep(0)
        brokers[1].replicas.remove_partitions([NAME])
        async with asyncio.timeout(2):
            assert only(await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(tmp_path, scenario)
