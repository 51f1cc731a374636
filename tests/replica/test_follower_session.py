"""The follower's side of a fetch session: what requests name, and what a lost session needs."""

from pathlib import Path

import pytest

from broker.log.config import LogConfig
from broker.log.manager import LogManager
from broker.model import LeaderAndIsr, TopicPartition, Uuid
from broker.protocol.messages.fetch import FetchRequest
from broker.replica.follower_session import FetchLimits, FollowerSession
from broker.replica.follower_state import FollowerState
from broker.replica.partition import Partition

TOPIC_ID = Uuid(b"the topic's id..")
LIMITS = FetchLimits(500, 1, 10_000_000, 1_000_000)
LATEST = 17


@pytest.fixture
def states(tmp_path: Path) -> list[FollowerState]:
    """Three partitions that broker 1 leads and broker 2 follows."""
    logs = LogManager([tmp_path], lambda _: LogConfig())
    logs.startup()
    made = []
    for index in range(3):
        name = TopicPartition("orders", index)
        log = logs.get_or_create(name, TOPIC_ID)
        state = LeaderAndIsr(1, 4, (1, 2), (1, 2))
        made.append(FollowerState(Partition(name, TOPIC_ID, 2, log, state)))
    return made


@pytest.fixture
def session(states: list[FollowerState]) -> FollowerSession:
    """A session with all three partitions, before the first request."""
    made = FollowerSession()
    for state in states:
        made.change(state)
    return made


def sent(session: FollowerSession, version: int = LATEST) -> FetchRequest:
    return session.request(version, 2, 77, LIMITS)


def named(request: FetchRequest) -> list[int]:
    return [asked.partition for topic in request.topics for asked in topic.partitions]


def forgotten(request: FetchRequest) -> list[int]:
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


def test_first_request_names_everything_and_later_ones_what_changed(
    session: FollowerSession, states: list[FollowerState]
) -> None:
    first = sent(session)
    assert (named(first), first.session_id, first.session_epoch) == ([0, 1, 2], 0, 0)
    session.answered(9)
    idle = sent(session)
    assert (named(idle), idle.session_id, idle.session_epoch) == ([], 9, 1)
    session.answered(9)
    session.change(states[1])
    session.forget(states[2])
    changed = sent(session)
    assert (named(changed), forgotten(changed), changed.session_epoch) == ([1], [2], 2)


def test_follower_is_identified_in_the_field_of_the_version(session: FollowerSession) -> None:
    latest = sent(session)
    assert (latest.replica_id, latest.replica_state.replica_id) == (-1, 2)
    assert latest.replica_state.replica_epoch == 77
    older = sent(session, 12)
    assert (older.replica_id, older.replica_state.replica_id) == (2, -1)


def test_request_after_a_lost_session_names_all_partitions(session: FollowerSession) -> None:
    sent(session)
    session.answered(9)
    sent(session)
    session.restart()
    again = sent(session)
    assert (named(again), again.session_id, again.session_epoch) == ([0, 1, 2], 0, 0)


def test_every_request_names_all_partitions_if_the_leader_keeps_no_session(
    session: FollowerSession,
) -> None:
    sent(session)
    session.answered(0)
    assert named(sent(session)) == [0, 1, 2]


def test_data_is_attributed_only_to_the_position_that_was_sent_last(
    session: FollowerSession, states: list[FollowerState]
) -> None:
    sent(session)
    assert session.find(TOPIC_ID, 1) is states[1]
    session.change(states[1])
    assert session.find(TOPIC_ID, 1) is None
    session.forget(states[2])
    assert session.find(TOPIC_ID, 2) is None
    newer = FollowerState(states[0].partition)
    session.change(newer)
    assert session.find(TOPIC_ID, 0) is None
    sent(session)
    assert session.find(TOPIC_ID, 0) is newer


def test_partition_removed_and_added_again_is_named_and_not_forgotten(
    session: FollowerSession, states: list[FollowerState]
) -> None:
    sent(session)
    session.answered(9)
    session.forget(states[0])
    session.change(states[0])
    request = sent(session)
    assert (named(request), forgotten(request)) == ([0], [])


def test_session_epoch_wraps_around_to_1(session: FollowerSession) -> None:
    sent(session)
    session._epoch = 0x7FFFFFFF
    session.answered(9)
    assert sent(session).session_epoch == 1
