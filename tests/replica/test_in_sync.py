"""The arithmetic of ISR and high watermark, for whatever followers may fetch."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from broker.replica.in_sync import (
    RemoteReplica,
    high_watermark_of,
    is_in_sync,
    low_watermark_of,
    out_of_sync_replicas,
)

LAG_MS = 100
OFFSETS = st.integers(0, 50)
IDS = range(2, 6)


def replica(broker_id: int, log_end_offset: int, caught_up_ms: int = 0) -> RemoteReplica:
    made = RemoteReplica(broker_id)
    made.log_end_offset = log_end_offset
    made.last_caught_up_ms = caught_up_ms
    return made


@st.composite
def replicas(draw: st.DrawFn) -> list[RemoteReplica]:
    ids = draw(st.lists(st.sampled_from(IDS), unique=True))
    return [replica(broker_id, draw(OFFSETS), draw(st.integers(0, 300))) for broker_id in ids]


@given(OFFSETS, replicas(), st.sets(st.sampled_from(IDS)), st.sets(st.sampled_from(IDS)))
def test_high_watermark_is_the_smallest_log_end_offset_of_replicas_that_count(
    log_end_offset: int, followers: list[RemoteReplica], isr: set[int], joining: set[int]
) -> None:
    found = high_watermark_of(log_end_offset, followers, isr, lambda r: r.broker_id in joining)
    counting = [r.log_end_offset for r in followers if r.broker_id in isr | joining]
    assert found == min([log_end_offset, *counting])


@given(OFFSETS, replicas(), st.sets(st.sampled_from(IDS)), st.sets(st.sampled_from(IDS)))
def test_larger_isr_never_advances_the_high_watermark(
    log_end_offset: int, followers: list[RemoteReplica], isr: set[int], more: set[int]
) -> None:
    smaller = high_watermark_of(log_end_offset, followers, isr, lambda _: False)
    assert high_watermark_of(log_end_offset, followers, isr | more, lambda _: False) <= smaller


@given(OFFSETS, replicas(), st.sets(st.sampled_from(IDS)), st.integers(0, 400))
def test_members_that_were_not_caught_up_lately_are_out_of_sync(
    log_end_offset: int, followers: list[RemoteReplica], isr: set[int], now_ms: int
) -> None:
    found = out_of_sync_replicas(isr, followers, log_end_offset, now_ms, LAG_MS)
    for one in followers:
        is_late = now_ms - one.last_caught_up_ms > LAG_MS
        lags = one.log_end_offset != log_end_offset and is_late
        assert (one.broker_id in found) == (lags and one.broker_id in isr)


def test_follower_that_fetches_from_the_log_end_is_caught_up_now() -> None:
    follower = RemoteReplica(2)
    follower.fetched(10, 0, now_ms=50, leader_log_end_offset=10)
    assert (follower.log_end_offset, follower.last_caught_up_ms) == (10, 50)


def test_follower_that_reaches_the_log_end_of_its_last_fetch_was_caught_up_then() -> None:
    follower = RemoteReplica(2)
    follower.fetched(5, 0, now_ms=50, leader_log_end_offset=10)
    assert follower.last_caught_up_ms == 50 * 0
    follower.fetched(10, 0, now_ms=90, leader_log_end_offset=20)
    assert follower.last_caught_up_ms == 50


def test_follower_that_never_reaches_the_log_end_is_never_caught_up() -> None:
    follower = RemoteReplica(2)
    for step in range(1, 100):
        follower.fetched(step * 5, 0, now_ms=step * 10, leader_log_end_offset=step * 5 + 100)
    assert not follower.is_caught_up(1000, 990, LAG_MS)


@dataclass
class Session:
    """A fetch session and the time of its last request."""

    last_fetch_ms: int


def test_idle_follower_is_caught_up_until_its_sessions_last_request() -> None:
    follower, session = RemoteReplica(2), Session(50)
    follower.fetched(10, 0, now_ms=50, leader_log_end_offset=10, session=session)
    session.last_fetch_ms = 1000
    follower.end_idle()  # the log grows
    assert follower.is_caught_up(11, 1000 + LAG_MS, LAG_MS)
    assert not follower.is_caught_up(11, 1001 + LAG_MS, LAG_MS)


def test_requests_after_the_log_has_grown_do_not_count_as_caught_up() -> None:
    follower, session = RemoteReplica(2), Session(50)
    follower.fetched(10, 0, now_ms=50, leader_log_end_offset=10, session=session)
    follower.end_idle()
    session.last_fetch_ms = 1000
    follower.end_idle()
    assert follower.last_caught_up_ms == 50


def test_lagging_follower_is_not_caught_up_by_repeating_its_fetch() -> None:
    follower, session = RemoteReplica(2), Session(50)
    follower.fetched(10, 0, now_ms=50, leader_log_end_offset=20, session=session)
    session.last_fetch_ms = 1000
    follower.end_idle()
    assert follower.last_caught_up_ms == 0


def test_requests_of_an_older_epoch_or_before_a_refusal_do_not_count() -> None:
    for end in (
        lambda one: one.begin_epoch(900, 10, is_new_leader=False, is_in_sync=False),
        RemoteReplica.refused,
    ):
        follower, session = RemoteReplica(2), Session(50)
        follower.fetched(10, 0, now_ms=50, leader_log_end_offset=10, session=session)
        end(follower)
        session.last_fetch_ms = 1000
        follower.end_idle()
        assert follower.last_caught_up_ms == 0


def test_new_leader_counts_members_of_the_isr_and_no_others_as_caught_up() -> None:
    member, other = RemoteReplica(2), RemoteReplica(3)
    for one in (member, other):
        one.fetched(10, 0, now_ms=900, leader_log_end_offset=10)
        one.begin_epoch(1000, 10, is_new_leader=True, is_in_sync=one is member)
    assert member.is_caught_up(11, 1000 + LAG_MS, LAG_MS)
    assert not other.is_caught_up(11, 1000, LAG_MS)
    assert member.log_end_offset == other.log_end_offset == -1


def test_leader_that_continues_in_a_new_epoch_keeps_the_offsets_of_followers() -> None:
    follower = RemoteReplica(2)
    follower.fetched(10, 3, now_ms=900, leader_log_end_offset=10)
    follower.begin_epoch(1000, 12, is_new_leader=False, is_in_sync=True)
    assert (follower.log_end_offset, follower.log_start_offset) == (10, 3)


@given(OFFSETS, OFFSETS, OFFSETS)
def test_follower_in_sync_has_all_that_is_committed_and_reached_the_epochs_start(
    log_end_offset: int, high_watermark: int, epoch_start: int
) -> None:
    joins = is_in_sync(replica(2, log_end_offset), high_watermark, epoch_start)
    assert joins == (log_end_offset >= high_watermark and log_end_offset >= epoch_start)


def test_low_watermark_ignores_dead_replicas() -> None:
    near, far = RemoteReplica(2), RemoteReplica(3)
    near.log_start_offset, far.log_start_offset = 5, 2
    assert low_watermark_of(9, [near, far], lambda _: True) == 2
    assert low_watermark_of(9, [near, far], lambda broker_id: broker_id == 2) == 5
    assert low_watermark_of(4, [near], lambda _: True) == 4
