"""Placement of replicas, against what Kafka's own algorithm gives for the same start."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.assignment import assign_replicas


def test_leaders_go_round_and_followers_shift_after_each_round() -> None:
    brokers = dict.fromkeys(range(5))
    assert assign_replicas(brokers, 10, 3, start_index=0, replica_shift=0) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_racks_alternate_and_each_gets_one_before_any_gets_two() -> None:
    racks: dict[int, str | None] = {0: "1", 1: "3", 2: "3", 3: "2", 4: "2", 5: "1"}
    placed = assign_replicas(racks, 7, 3, start_index=0, replica_shift=0)
    # 0 3 1 5 4 2 is the alternating order of these brokers; the example is Kafka's own.
    assert placed == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


def test_more_replicas_than_brokers_raises_kafkas_words() -> None:
    with pytest.raises(ValueError, match="Replication factor: 4 larger than available brokers: 3"):
        assign_replicas(dict.fromkeys(range(3)), 1, 4)


def test_added_partitions_go_on_where_the_old_ones_ended() -> None:
    brokers = dict.fromkeys(range(5))
    whole = assign_replicas(brokers, 10, 3, start_index=0, replica_shift=0)
    added = assign_replicas(brokers, 3, 3, first_partition=2, start_index=0, replica_shift=0)
    assert added == whole[2:5]


@given(
    num_brokers=st.integers(1, 12),
    num_racks=st.integers(0, 4),
    num_partitions=st.integers(1, 60),
    data=st.data(),
)
def test_replicas_differ_leaders_are_even_and_racks_are_used(
    num_brokers: int, num_racks: int, num_partitions: int, data: st.DataObject
) -> None:
    brokers = {
        broker: f"rack-{broker % num_racks}" if num_racks else None for broker in range(num_brokers)
    }
    factor = data.draw(st.integers(1, num_brokers))
    placed = assign_replicas(brokers, num_partitions, factor)
    assert len(placed) == num_partitions
    for replicas in placed:
        assert len(set(replicas)) == factor
        if num_racks:
            racks = {brokers[replica] for replica in replicas}
            assert len(racks) == min(factor, len(set(brokers.values())))
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[broker] for broker in brokers) <= 1
