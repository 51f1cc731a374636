"""Partitions that need an election, and the expected leaders."""

import pytest

from broker.model import TopicPartition
from kctl.model.elections import ElectionType
from kctl.model.topics import Partition, Topic
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
        (partition(None, (3, 4), (3,)), None, "no replica is alive"),
    ],
)
def test_unclean_election_elects_any_live_replica(
    found: Partition, elects: int | None, note: str
) -> None:
    (candidate,) = candidates_of([topic(found)], ElectionType.UNCLEAN, UP)
    assert (candidate.elects, candidate.note) == (elects, note)


def test_partitions_without_need_of_an_election_are_omitted() -> None:
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
