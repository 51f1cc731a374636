"""A follower's side of a fetch session: only news is sent, a lost session begins anew."""

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
    """With all three, of which the leader knows nothing yet."""
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


def test_request_says_who_asks_as_its_version_does(session: FollowerSession) -> None:
    latest = sent(session)
    assert (latest.replica_id, latest.replica_state.replica_id) == (-1, 2)
    assert latest.replica_state.replica_epoch == 77
    older = sent(session, 12)
    assert (older.replica_id, older.replica_state.replica_id) == (2, -1)


def test_session_that_was_lost_begins_with_everything(session: FollowerSession) -> None:
    sent(session)
    session.answered(9)
    sent(session)
    session.restart()
    again = sent(session)
    assert (named(again), again.session_id, again.session_epoch) == ([0, 1, 2], 0, 0)


def test_leader_that_keeps_no_session_is_told_everything_each_time(
    session: FollowerSession,
) -> None:
    sent(session)
    session.answered(0)
    assert named(sent(session)) == [0, 1, 2]


def test_answers_count_only_for_what_was_asked_last(
    session: FollowerSession, states: list[FollowerState]
) -> None:
    sent(session)
    assert session.find(TOPIC_ID, 1) is states[1]
    session.change(states[1])
    assert session.find(TOPIC_ID, 1) is None
    session.forget(states[2])
    assert session.find(TOPIC_ID, 2) is None
    anew = FollowerState(states[0].partition)
    session.change(anew)
    assert session.find(TOPIC_ID, 0) is None
    sent(session)
    assert session.find(TOPIC_ID, 0) is anew


def test_partition_forgotten_and_taken_up_again_is_named_not_forgotten(
    session: FollowerSession, states: list[FollowerState]
) -> None:
    sent(session)
    session.answered(9)
    session.forget(states[0])
    session.change(states[0])
    request = sent(session)
    assert (named(request), forgotten(request)) == ([0], [])


def test_epochs_go_round(session: FollowerSession) -> None:
    sent(session)
    session._epoch = 0x7FFFFFFF
    session.answered(9)
    assert sent(session).session_epoch == 1
