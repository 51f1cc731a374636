"""Fetch sessions (KIP-227): requests, responses, and the end of a session."""

from collections.abc import Iterable

import pytest

from broker.api.fetch_session import FetchSession, FetchSessionCache, FetchSessionPartition
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from broker.replica.purgatory import Purgatory

VERSION = 12


def request(
    session_id: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = ()
) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic="orders",
                partitions=[
                    FetchPartition(partition=index, fetch_offset=7) for index in partitions
                ],
            )
        ]
        if partitions
        else [],
        forgotten_topics_data=[ForgottenTopic(topic="orders", partitions=list(forgotten))]
        if forgotten
        else [],
    )


def indexes(partitions: Iterable[FetchSessionPartition]) -> list[int]:
    return [partition.requested.partition for partition in partitions]


@pytest.fixture
def cache() -> FetchSessionCache:
    return FetchSessionCache(slots=2, eviction_ms=1000, purgatory=Purgatory())


def test_request_without_session_gets_none(cache: FetchSessionCache) -> None:
    plan = cache.plan(request(0, -1, 0, 1), VERSION, 0)
    session = plan.session
    assert (session.session_id, indexes(session.pending), len(cache)) == (0, [0, 1], 0)


def test_session_remembers_partitions_adds_and_forgets(cache: FetchSessionCache) -> None:
    first = cache.plan(request(0, 0, 0, 1), VERSION, 0)
    session_id = first.session.session_id
    assert session_id > 0
    assert not first.is_incremental
    second = cache.plan(request(session_id, 1), VERSION, 0)
    assert (indexes(second.session.partitions.values()), second.is_incremental) == ([0, 1], True)
    third = cache.plan(request(session_id, 2, 2, forgotten=(0,)), VERSION, 0)
    assert indexes(third.session.partitions.values()) == [1, 2]


def test_request_out_of_step_is_refused(cache: FetchSessionCache) -> None:
    session_id = cache.plan(request(0, 0, 0), VERSION, 0).session.session_id
    with pytest.raises(ApiError) as wrong_epoch:
        cache.plan(request(session_id, 5), VERSION, 0)
    assert wrong_epoch.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    with pytest.raises(ApiError) as unknown:
        cache.plan(request(session_id + 1, 1), VERSION, 0)
    assert unknown.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_session_by_names_does_not_go_on_by_ids(cache: FetchSessionCache) -> None:
    session_id = cache.plan(request(0, 0, 0), VERSION, 0).session.session_id
    with pytest.raises(ApiError) as error:
        cache.plan(request(session_id, 1), 13, 0)
    assert error.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_final_epoch_and_a_new_full_fetch_both_end_the_session(cache: FetchSessionCache) -> None:
    ended = cache.plan(request(0, 0, 0), VERSION, 0).session.session_id
    assert cache.plan(request(ended, -1, 0), VERSION, 0).session.session_id == 0
    replaced = cache.plan(request(0, 0, 0), VERSION, 0).session.session_id
    assert cache.plan(request(replaced, 0, 0), VERSION, 0).session.session_id not in (0, replaced)
    assert len(cache) == 1


def test_full_cache_gives_way_only_to_who_comes_long_after(cache: FetchSessionCache) -> None:
    for _ in range(2):
        cache.plan(request(0, 0, 0), VERSION, 0)
    assert cache.plan(request(0, 0, 0), VERSION, 0.5).session.session_id == 0
    assert cache.plan(request(0, 0, 0), VERSION, 2).session.session_id > 0


def test_partition_is_news_when_the_client_has_not_seen_its_state() -> None:
    session = FetchSession(Purgatory(), 1, -1, uses_topic_ids=False)
    partition = FetchSessionPartition(session, "orders", FetchPartition(partition=0))
    seen = PartitionData(high_watermark=5, log_start_offset=0, records=b"")
    assert partition.update_sent(seen)
    assert not partition.update_sent(seen)
    moved = PartitionData(high_watermark=6, log_start_offset=0, records=b"")
    assert partition.update_sent(moved)
    assert partition.update_sent(PartitionData(high_watermark=6, log_start_offset=0, records=b"x"))
    failed = PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=-1)
    assert partition.update_sent(failed)
