from hypothesis import given
from hypothesis import strategies as st

from broker.group.offsets import AppendedOffset, Commits, GroupOffsets, OffsetAndMetadata
from broker.model import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def value(
    offset: int, commit_timestamp_ms: int = 0, expires: int | None = None
) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, "", commit_timestamp_ms, expire_timestamp_ms=expires)


def committed(offsets: GroupOffsets) -> dict[TopicPartition, int]:
    return {name: appended.value.offset for name, appended in offsets.committed.items()}


def commit(offsets: GroupOffsets, commits: Commits, batch_offset: int) -> None:
    offsets.prepare(commits)
    offsets.complete(commits, batch_offset)


def test_commit_is_pending_until_it_is_appended() -> None:
    offsets, commits = GroupOffsets(), {A: value(5)}
    offsets.prepare(commits)
    assert (offsets.is_pending(A), committed(offsets), bool(offsets)) == (True, {}, True)
    offsets.complete(commits, batch_offset=0)
    assert (offsets.is_pending(A), committed(offsets)) == (False, {A: 5})


def test_failed_commit_keeps_the_previous_offset() -> None:
    offsets, failing = GroupOffsets(), {A: value(6)}
    commit(offsets, {A: value(5)}, 0)
    offsets.prepare(failing)
    offsets.fail(failing)
    assert (offsets.is_pending(A), committed(offsets)) == (False, {A: 5})


def test_commit_succeeds_although_a_later_one_failed() -> None:
    offsets, first, second = GroupOffsets(), {A: value(5)}, {A: value(6)}
    offsets.prepare(first)
    offsets.prepare(second)
    offsets.fail(second)
    offsets.complete(first, 0)
    assert committed(offsets) == {A: 5}


def test_commit_of_a_partition_deleted_meanwhile_is_dropped() -> None:
    offsets, commits = GroupOffsets(), {A: value(5)}
    offsets.prepare(commits)
    assert offsets.remove([A]) == []
    offsets.complete(commits, 0)
    assert committed(offsets) == {}


def test_offsets_of_a_transaction_are_committed_with_it() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional(7, {A: value(5), B: value(6)})
    offsets.append_transactional(7, {A: value(5), B: value(6)}, 3)
    assert (offsets.is_pending(A), committed(offsets)) == (True, {})
    offsets.end_transaction(7, is_commit=True)
    assert (offsets.is_pending(A), committed(offsets)) == (False, {A: 5, B: 6})


def test_offsets_of_an_aborted_transaction_are_dropped() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional(7, {A: value(5)})
    offsets.append_transactional(7, {A: value(5)}, 3)
    offsets.end_transaction(7, is_commit=False)
    assert not offsets


def test_later_plain_commit_wins_over_a_transactional_one() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional(7, {A: value(5)})
    offsets.append_transactional(7, {A: value(5)}, 3)
    commit(offsets, {A: value(9)}, 4)
    offsets.end_transaction(7, is_commit=True)
    assert committed(offsets) == {A: 9}


def test_transactional_commit_that_was_not_appended_is_not_committed() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional(7, {A: value(5)})
    offsets.fail_transactional(7, [A])
    assert not offsets.has_transaction(7)
    offsets.end_transaction(7, is_commit=True)
    assert committed(offsets) == {}


def test_transactional_commit_succeeds_although_a_later_one_failed() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional(7, {A: value(5)})
    offsets.append_transactional(7, {A: value(5)}, 3)
    offsets.prepare_transactional(7, {A: value(6)})
    offsets.fail_transactional(7, [A])
    offsets.end_transaction(7, is_commit=True)
    assert committed(offsets) == {A: 5}


def test_removed_offsets_are_returned_once() -> None:
    offsets = GroupOffsets()
    offsets.load({A: AppendedOffset(0, value(1))}, {7: {A: AppendedOffset(1, value(2))}})
    assert offsets.remove([A, B, A]) == [A]
    assert not offsets


def test_expiry_keeps_subscribed_topics_and_pending_commits() -> None:
    offsets = GroupOffsets()
    kept, pending, old = TopicPartition("kept", 0), A, B
    offsets.load({name: AppendedOffset(0, value(1)) for name in (kept, pending, old)}, {})
    offsets.prepare({pending: value(2)})
    expired = offsets.remove_expired(100, 100, lambda v: v.commit_timestamp_ms, {"kept"})
    assert expired == [old]


def test_offset_with_its_own_expiry_ignores_the_retention() -> None:
    offsets = GroupOffsets()
    offsets.load({A: AppendedOffset(0, value(1, 0, expires=50))}, {})
    assert offsets.remove_expired(49, 1, lambda v: v.commit_timestamp_ms) == []
    assert offsets.remove_expired(50, 1_000_000, lambda v: v.commit_timestamp_ms) == [A]


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_last_commit_of_the_log_wins_in_any_order_of_completion(
    order: list[int], failing: set[int]
) -> None:
    offsets = GroupOffsets()
    commits = [{A: value(number)} for number in range(6)]
    for each in commits:
        offsets.prepare(each)
    for number in order:
        if number in failing:
            offsets.fail(commits[number])
        else:
            offsets.complete(commits[number], batch_offset=number)
    assert committed(offsets).get(A) == max(set(range(6)) - failing, default=None)
    assert not offsets.is_pending(A)
