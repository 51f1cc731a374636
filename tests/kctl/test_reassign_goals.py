"""Reassignment plans: invariants of every plan, and the effect of each goal."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.model.assignments import Layout
from kctl.operations.reassignment.proposals import Proposal, nothing_to_do
from kctl.plans.reassignment.cost import batches_of, broker_loads, changes_of, reassignment_cost
from kctl.plans.reassignment.goals import (
    Balance,
    Goals,
    Racks,
    Unplannable,
    allowed_brokers,
    plan_reassignment,
)

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))


@st.composite
def layouts(draw: st.DrawFn, *, replicas: int | None = None, racks: bool = True) -> Layout:
    """Up to three topics on up to six brokers, one of which may be down."""
    count = draw(st.integers(2, 6))
    ids = list(range(1, count + 1))
    names = draw(st.lists(st.sampled_from("abc"), min_size=count, max_size=count))
    has_racks = racks and draw(st.booleans())
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in ("t", "u", "v")[: draw(st.integers(1, 3))]:
        factor = replicas or draw(st.integers(1, min(3, count)))
        for partition in range(draw(st.integers(1, 8))):
            order = draw(st.permutations(ids))
            found[TopicPartition(topic, partition)] = tuple(order[:factor])
    sizes = {tp: draw(st.integers(0, 1000)) for tp in found}
    up = {broker: name if has_racks else None for broker, name in zip(ids, names, strict=True)}
    return Layout(up, found, sizes)


@st.composite
def goals_for(draw: st.DrawFn, layout: Layout) -> Goals:
    ids = sorted(layout.brokers)
    drained = draw(st.sets(st.sampled_from(ids), max_size=max(0, len(ids) - 3)))
    factor = draw(st.none() | st.integers(1, len(ids) - len(drained)))
    has_racks = None not in layout.brokers.values()
    return Goals(
        drain=frozenset(drained),
        add=frozenset(draw(st.sets(st.sampled_from(ids), max_size=2))) - drained,
        replication_factor=factor,
        racks=draw(st.sampled_from(list(Racks) if has_racks else [Racks.KEPT, Racks.IGNORED])),
        balance=frozenset(draw(st.sets(st.sampled_from(list(Balance))))),
    )


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Layout, Goals]:
    layout = draw(layouts())
    return layout, draw(goals_for(layout))


def planned(layout: Layout, goals: Goals) -> Layout:
    """The layout after the plan has been executed."""
    return replace(layout, replicas={**layout.replicas, **plan_reassignment(layout, goals)})


def racks_of(layout: Layout, replicas: tuple[int, ...]) -> set[str | None]:
    return {layout.brokers[broker] for broker in replicas}


@given(tasks())
def test_plan_keeps_every_partition_whole(task: tuple[Layout, Goals]) -> None:
    layout, goals = task
    for partition, replicas in planned(layout, goals).replicas.items():
        assert len(replicas) == len(set(replicas))
        assert len(replicas) == (goals.replication_factor or len(layout.replicas[partition]))
        assert not goals.drain & set(replicas)


@given(tasks())
def test_planning_from_the_result_moves_nothing(task: tuple[Layout, Goals]) -> None:
    layout, goals = task
    assert plan_reassignment(planned(layout, goals), goals) == {}


@given(tasks())
def test_same_goals_give_the_same_plan(task: tuple[Layout, Goals]) -> None:
    layout, goals = task
    backwards = replace(layout, replicas=dict(reversed(list(layout.replicas.items()))))
    assert plan_reassignment(layout, goals) == plan_reassignment(backwards, goals)


def test_regression_lower_replication_factor_of_a_drained_broker_does_not_cost_a_rack() -> None:
    layout = Layout({1: "a", 2: "a", 3: "b", 4: "b"}, {T0: (1, 3, 4)}, {})
    goals = Goals(drain=frozenset({1}), replication_factor=2)
    assert plan_reassignment(layout, goals) == {T0: (3, 2)}


@given(tasks())
def test_rack_spread_is_preserved_if_possible(
    task: tuple[Layout, Goals],
) -> None:
    layout, goals = task
    if goals.racks is Racks.IGNORED or None in layout.brokers.values():
        return
    left = racks_of(layout, tuple(allowed_brokers(layout, goals)))
    for partition, replicas in planned(layout, goals).replicas.items():
        before = len(racks_of(layout, layout.replicas[partition]))
        possible = min(len(left), len(replicas))
        wanted = possible if goals.racks is Racks.MENDED else min(before, possible)
        assert len(racks_of(layout, replicas)) >= wanted


@given(layouts(), st.data())
def test_drain_moves_only_replicas_of_drained_brokers(layout: Layout, data: st.DataObject) -> None:
    most = len(layout.brokers) - max(map(len, layout.replicas.values()))
    drained = data.draw(st.sets(st.sampled_from(sorted(layout.brokers)), max_size=most))
    changes = plan_reassignment(layout, Goals(drain=frozenset(drained)))
    for move in changes_of(layout, changes):
        assert set(move.removing) <= drained
        assert len(move.adding) == len(move.removing)


def fewest_moves(loads: list[int]) -> int:
    """How many must leave their broker until no two brokers differ by more than one."""
    least, more = divmod(sum(loads), len(loads))
    targets = [least + 1] * more + [least] * (len(loads) - more)
    return sum(
        max(0, load - target)
        for load, target in zip(sorted(loads, reverse=True), targets, strict=True)
    )


@given(layouts(replicas=1, racks=False))
def test_balance_by_count_moves_as_few_single_replicas_as_can_be(layout: Layout) -> None:
    goals = Goals(balance=frozenset({Balance.COUNT}))
    loads = Counter(replicas[0] for replicas in layout.replicas.values())
    changes = plan_reassignment(layout, goals)
    assert len(changes) == fewest_moves([loads[broker] for broker in layout.brokers])
    after = Counter(r[0] for r in planned(layout, goals).replicas.values())
    counts = [after[broker] for broker in layout.brokers]
    assert max(counts) - min(counts) <= 1


@given(layouts(racks=False))
def test_balance_by_count_evens_out_replicas(layout: Layout) -> None:
    after = planned(layout, Goals(balance=frozenset({Balance.COUNT}))).replicas
    counts = Counter(broker for replicas in after.values() for broker in replicas)
    values = [counts[broker] for broker in layout.brokers]
    assert max(values) - min(values) <= 1


@given(layouts())
def test_balance_of_leaders_copies_nothing_and_does_not_increase_skew(layout: Layout) -> None:
    changes = plan_reassignment(layout, Goals(balance=frozenset({Balance.LEADERS})))
    assert all(not move.adding and not move.removing for move in changes_of(layout, changes))
    total = reassignment_cost(layout, changes, layout.brokers)
    assert total.leader_skew_then <= total.leader_skew_now


@given(layouts())
def test_balance_by_size_lowers_the_fullest_broker_if_it_moves_anything(layout: Layout) -> None:
    changes = plan_reassignment(layout, Goals(balance=frozenset({Balance.SIZE})))
    rows = broker_loads(layout, changes)
    now, then = (max(getattr(row, key) for row in rows) for key in ("bytes_now", "bytes_then"))
    assert then <= now


def test_balance_by_size_moves_only_the_excess_and_approaches_the_mean() -> None:
    found = {TopicPartition("t", index): (1,) for index in range(90)}
    layout = Layout(dict.fromkeys((1, 2, 3)), found, dict.fromkeys(found, 10))
    changes = plan_reassignment(layout, Goals(balance=frozenset({Balance.SIZE})))
    total = reassignment_cost(layout, changes, layout.brokers)
    assert total.move_bytes <= 600
    assert total.byte_skew_then <= 1.05


def test_balance_by_size_does_not_swap_loads() -> None:
    layout = Layout(dict.fromkeys((1, 2)), {T0: (1,), T1: (2,)}, {T0: 100, T1: 5})
    assert plan_reassignment(layout, Goals(balance=frozenset({Balance.SIZE}))) == {}


@given(layouts())
def test_only_new_brokers_get_replicas(layout: Layout) -> None:
    new = {broker: layout.brokers[min(layout.brokers)] for broker in (7, 8)}
    wider = replace(layout, brokers={**layout.brokers, **new})
    changes = plan_reassignment(wider, Goals(add=frozenset(new), racks=Racks.IGNORED))
    for move in changes_of(wider, changes):
        assert set(move.adding) <= set(new)


def test_leadership_is_handed_on_along_a_chain() -> None:
    layout = Layout(dict.fromkeys((1, 2, 3)), {T0: (1, 2), T1: (1, 2), T2: (2, 3)})
    changes = plan_reassignment(layout, Goals(balance=frozenset({Balance.LEADERS})))
    assert {**layout.replicas, **changes}.keys() == {T0, T1, T2}
    assert sorted(r[0] for r in {**layout.replicas, **changes}.values()) == [1, 2, 3]


def test_broker_that_is_down_keeps_its_replicas_unless_it_is_drained() -> None:
    layout = Layout(dict.fromkeys((1, 2)), {T0: (1, 9), T1: (9, 2)})
    assert plan_reassignment(layout, Goals(balance=frozenset({Balance.LEADERS}))) == {}
    assert plan_reassignment(layout, Goals(drain=frozenset({9}))) == {T0: (1, 2), T1: (1, 2)}


def test_shrinking_gives_up_a_drained_broker_before_any_other_and_keeps_the_leader() -> None:
    layout = Layout(dict.fromkeys((1, 2, 3)), {T0: (1, 2, 3), T1: (3, 1, 2)})
    goals = Goals(drain=frozenset({2}), replication_factor=2)
    assert plan_reassignment(layout, goals) == {T0: (1, 3), T1: (3, 1)}


def test_growth_goes_to_racks_without_a_replica_first() -> None:
    layout = Layout({1: "a", 2: "a", 3: "b"}, {T0: (1,), T1: (1,), T2: (3,)})
    after = planned(layout, Goals(replication_factor=2)).replicas
    assert (after[T0], after[T1]) == ((1, 3), (1, 3))
    assert after[T2] == (3, 2)


@pytest.mark.parametrize(
    ("goals", "words"),
    [
        (Goals(replication_factor=3), "3 replicas of t-0 require as many brokers"),
        (Goals(brokers=frozenset({9})), "no such broker: 9"),
        (Goals(drain=frozenset({1, 2})), "no usable broker"),
        (Goals(brokers=frozenset({1}), drain=frozenset({1})), "to be drained and to be used"),
        (Goals(racks=Racks.MENDED), "broker 1, 2 has no rack"),
    ],
)
def test_unreachable_goals_are_refused_with_the_reason(goals: Goals, words: str) -> None:
    layout = Layout({1: None, 2: None}, {T0: (1,)})
    with pytest.raises(Unplannable, match=words) as refused:
        plan_reassignment(layout, goals)
    assert refused.value.hint


def test_racks_of_some_brokers_only_are_refused_unless_they_are_to_be_ignored() -> None:
    layout = Layout({1: "a", 2: None}, {T0: (1,)})
    with pytest.raises(Unplannable, match="broker 2 has no rack"):
        plan_reassignment(layout, Goals(drain=frozenset({1})))
    goals = Goals(drain=frozenset({1}), racks=Racks.IGNORED)
    assert plan_reassignment(layout, goals) == {T0: (2,)}


def test_first_batch_has_the_changes_that_copy_nothing() -> None:
    layout = Layout(dict.fromkeys((1, 2, 3)), {T0: (1,), T1: (1, 2), T2: (1,)}, {T0: 5, T2: 7})
    moves = changes_of(layout, {T0: (2,), T1: (2, 1), T2: (2,)})
    assert [[m.partition for m in batch] for batch in batches_of(moves, 1)] == [[T1], [T0], [T2]]
    assert [[m.partition for m in batch] for batch in batches_of(moves, 9)] == [[T1], [T0, T2]]
    assert [m.move_bytes for m in moves] == [5, 0, 7]


def test_cost_counts_added_and_removed_replicas_and_leader_changes() -> None:
    layout = Layout(dict.fromkeys((1, 2)), {T0: (1,), T1: (1,)}, {T0: 10, T1: 10})
    total = reassignment_cost(layout, {T1: (2,)}, [1, 2])
    assert (total.partitions, total.replicas_added, total.move_bytes) == (1, 1, 10)
    assert (total.replica_skew_now, total.replica_skew_then) == (2.0, 1.0)


def test_new_brokers_get_their_share_without_replacing_whole_replica_sets() -> None:
    replicas = {
        TopicPartition("pay", number): (2, 1) if number % 2 else (1, 2) for number in range(6)
    }
    layout = Layout(dict.fromkeys([1, 2, 3, 4]), replicas)
    changes = plan_reassignment(layout, Goals(add=frozenset({3, 4})))
    after = {**replicas, **changes}
    assert Counter(b for found in after.values() for b in found) == dict.fromkeys([1, 2, 3, 4], 3)
    assert all(set(after[tp]) & set(replicas[tp]) for tp in replicas)


@given(layouts(replicas=2, racks=False))
def test_no_move_replaces_a_set_while_another_partition_could_move(layout: Layout) -> None:
    added = max(layout.brokers)
    changes = plan_reassignment(layout, Goals(add=frozenset({added})))
    # With one new broker, every partition gets at most one new replica.
    assert all(set(then) & set(layout.replicas[tp]) for tp, then in changes.items())


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        ([(1, 2), (2, 1)], "--add-brokers 3 would give 3 a share"),
        ([(1, 2), (1, 2), (1, 2), (3, 1)], "--balance count would even out 1 to 4 replicas"),
        ([(1, 2), (2, 3), (3, 1)], ""),
    ],
)
def test_plan_that_does_nothing_says_what_would(
    replicas: list[tuple[int, ...]], words: str
) -> None:
    found = {TopicPartition("t", number): one for number, one in enumerate(replicas)}
    layout = Layout(dict.fromkeys([1, 2, 3]), found)
    goals = Goals(brokers=frozenset({1, 2, 3}))
    assert plan_reassignment(layout, goals) == {}
    text = nothing_to_do(Proposal(layout, {}, allowed_brokers(layout, goals)))
    assert text.startswith("nothing to reassign")
    assert words in text
