"""Reassignments between any two sets of replicas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.replica_assignment import (
    check_target,
    is_complete,
    origin_of,
    reassign_to,
    target_of,
)
from broker.errors import ApiError, ErrorCode
from broker.metadata.znodes.topics import ReplicaAssignment

REPLICAS = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True)


@given(REPLICAS, REPLICAS, REPLICAS)
def test_a_reassignment_has_its_origin_and_its_target(
    origin: list[int], first: list[int], second: list[int]
) -> None:
    moving = reassign_to(ReplicaAssignment(tuple(origin)), first)
    assert target_of(moving) == tuple(first)
    assert set(origin_of(moving)) == set(origin)
    # A second target replaces the first; the origin is kept.
    diverted = reassign_to(moving, second)
    assert target_of(diverted) == tuple(second)
    assert set(origin_of(diverted)) == set(origin)


@given(REPLICAS, REPLICAS)
def test_cancelling_restores_the_origin_and_is_complete_at_once(
    origin: list[int], target: list[int]
) -> None:
    moving = reassign_to(ReplicaAssignment(tuple(origin)), target)
    back = reassign_to(moving, origin_of(moving))
    assert set(back.replicas) == set(origin)
    assert is_complete(back, isr=())


@given(REPLICAS, REPLICAS)
def test_reassignment_is_complete_when_the_target_is_in_the_isr(
    origin: list[int], target: list[int]
) -> None:
    moving = reassign_to(ReplicaAssignment(tuple(origin)), target)
    assert is_complete(moving, target)
    is_same = set(origin) == set(target)
    assert is_complete(moving, target[1:]) == is_same


def test_only_new_replicas_have_to_be_alive() -> None:
    current = ReplicaAssignment((1, 9))
    check_target([9, 1], current, live_brokers={1})
    with pytest.raises(ApiError) as refused:
        check_target([1, 8, 9, 7], current, live_brokers={1})
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refused.value.message == (
        "Replica assignment has brokers that are not alive. "
        "Replica list: ArrayBuffer(8, 7), live broker list: Set(1)"
    )
