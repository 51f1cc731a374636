"""Which partitions need an election, and whom it would make leader."""

import pytest

from broker.model import TopicPartition
from kctl.admin.elect_leaders import ElectionType
from kctl.admin.topics import Partition, Topic
from kctl.plans.elections import candidates_of

UP = frozenset({1, 2})


def topic(*partitions: Partition) -> Topic:
    return Topic("t", None, False, partitions)


def partition(
    leader: int | None, replicas: tuple[int, ...], isr: tuple[int, ...], index: int = 0
) -> Partition:
    return Partition(index, leader, 0, replicas, isr)


@pytest.mark.parametrize(
    ("found", "elects", "note"),
    [
        (partition(2, (1, 2), (1, 2)), 1, ""),
        (partition(2, (1, 2), (2,)), None, "broker 1 is not in sync"),
        (partition(2, (3, 2), (2,)), None, "broker 3 is down"),
        (partition(None, (1, 2), (1,)), 1, ""),
    ],
)
def test_preferred_election_brings_back_the_first_replica_if_it_can(
    found: Partition, elects: int | None, note: str
) -> None:
    (candidate,) = candidates_of([topic(found)], ElectionType.PREFERRED, UP)
    assert (candidate.elects, candidate.note) == (elects, note)


@pytest.mark.parametrize(
    ("found", "elects", "note"),
    [
        (partition(None, (3, 2), (3,)), 2, "records may be lost"),
        (partition(None, (3, 4), (3,)), None, "no replica is up"),
    ],
)
def test_unclean_election_takes_any_replica_that_is_up(
    found: Partition, elects: int | None, note: str
) -> None:
    (candidate,) = candidates_of([topic(found)], ElectionType.UNCLEAN, UP)
    assert (candidate.elects, candidate.note) == (elects, note)


def test_partitions_that_need_no_election_are_left_out() -> None:
    well = topic(partition(1, (1, 2), (1, 2)))
    assert candidates_of([well], ElectionType.PREFERRED, UP) == []
    elsewhere = topic(partition(2, (1, 2), (1, 2)))
    assert candidates_of([elsewhere], ElectionType.UNCLEAN, UP) == []


def test_broker_is_that_which_would_lead_or_that_has_a_replica() -> None:
    found = topic(
        partition(2, (1, 2), (1, 2), 0),
        partition(1, (2, 1), (1, 2), 1),
        partition(None, (2, 3), (), 2),
    )
    by_two = candidates_of([found], ElectionType.PREFERRED, UP, broker=2)
    assert [one.partition for one in by_two] == [TopicPartition("t", 1), TopicPartition("t", 2)]
    unclean = candidates_of([found], ElectionType.UNCLEAN, UP, broker=3)
    assert [one.partition for one in unclean] == [TopicPartition("t", 2)]
    assert candidates_of([found], ElectionType.UNCLEAN, UP, broker=1) == []
