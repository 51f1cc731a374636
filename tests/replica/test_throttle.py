"""Replication quotas: which replicas are throttled, and when they have to wait."""

import pytest

from broker.model import TopicPartition
from broker.replica.throttle import Rate, Throttle

NAME = TopicPartition("orders", 0)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> Throttle:
    return Throttle(Rate(), clock)


def test_replicas_are_named_by_partition_and_broker(throttle: Throttle) -> None:
    throttle.set_replicas("orders", ["0:1", "2:1", "1:9"], broker_id=1)
    assert [throttle.is_throttled(TopicPartition("orders", i)) for i in range(3)] == [
        True,
        False,
        True,
    ]
    assert not throttle.is_throttled(TopicPartition("payments", 0))
    throttle.set_replicas("orders", [], broker_id=1)
    assert not throttle.is_throttled(NAME)


def test_star_throttles_every_replica(throttle: Throttle) -> None:
    throttle.set_replicas("orders", ["*"], broker_id=1)
    assert throttle.is_throttled(TopicPartition("orders", 77))


def test_replicas_wait_while_the_rate_of_throttled_bytes_is_above_the_limit(
    throttle: Throttle, clock: Clock
) -> None:
    throttle.set_replicas("orders", ["*"], broker_id=1)
    throttle.limit = 1000
    throttle.record(NAME, 5000)
    assert throttle.holds_back(NAME)
    clock.now_s = 4.9
    assert throttle.holds_back(NAME)
    clock.now_s = 5.1
    assert not throttle.holds_back(NAME)
    clock.now_s = 60
    throttle.record(NAME, 900)
    assert not throttle.holds_back(NAME)


def test_bytes_of_replicas_that_are_not_throttled_do_not_count(throttle: Throttle) -> None:
    throttle.limit = 1000
    throttle.record(NAME, 10**9)
    throttle.set_replicas("orders", ["*"], broker_id=1)
    assert not throttle.holds_back(NAME)


def test_replicas_do_not_wait_after_the_limit_is_removed(throttle: Throttle) -> None:
    throttle.set_replicas("orders", ["*"], broker_id=1)
    throttle.limit = 1
    throttle.record(NAME, 10**6)
    assert throttle.holds_back(NAME)
    throttle.limit = 10**9
    assert not throttle.holds_back(NAME)


def test_steady_rate_is_measured_exactly() -> None:
    rate = Rate()
    for second in range(60):
        rate.record(300, float(second))
    assert rate.measure(59.5) == pytest.approx(300, rel=0.15)


def test_seconds_above_is_the_time_until_the_rate_is_within_the_limit() -> None:
    rate = Rate()
    rate.record(5000, 0.0)
    assert rate.seconds_above(1000, 2.0) == pytest.approx(3)
    assert rate.measure(5.0) == pytest.approx(1000)
    assert rate.seconds_above(10_000, 2.0) == 0
    assert rate.seconds_above(0, 2.0) == pytest.approx(9)  # until all samples are too old
