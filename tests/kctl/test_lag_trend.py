"""Trend and verdict of consumer lag over a window that spans several commits."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer

from broker.model import TopicPartition
from kctl.model.groups import Member
from kctl.model.lag import Movement, PartitionLag, Trend, Verdict
from kctl.plans.trend import LagHistory
from tests.support.broker import RunningBroker
from tests.support.kctl import run_kctl

PLACE = TopicPartition("orders", 0)
MEMBER = Member("m-1", None, "client", "/10.0.0.1", (PLACE,))
LOOK_S = 2.0
COMMIT_S = 5.0
RATE = 80.0
"""Records written per second."""

Read = Callable[[float], float]
"""The position of a consumer at a time."""


def timeline(
    read: Read, seconds: float, *, age_ms: int | None = None, member: Member | None = MEMBER
) -> list[Movement]:
    """What `groups watch` shows of a consumer that commits every 5 s, look by look."""
    history = LagHistory()
    shown = []
    for look in range(int(seconds / LOOK_S)):
        time_s = look * LOOK_S
        end = int(10_000 + RATE * time_s)
        committed = min(int(read(time_s // COMMIT_S * COMMIT_S)), end)
        age = age_ms if age_ms is not None else round(1000 * (end - committed) / RATE)
        lag = PartitionLag("billing", PLACE, committed, 0, end, member, age)
        shown += history.add(time_s, [lag])
    return shown


def keeping_up(time_s: float) -> float:
    return 10_000 + RATE * time_s


def test_consumer_that_keeps_up_is_ok_at_every_look() -> None:
    shown = timeline(keeping_up, 120)
    assert {one.verdict for one in shown} == {Verdict.OK}
    assert {one.trend for one in shown} <= {Trend.UNKNOWN, Trend.CAUGHT_UP, Trend.STEADY}
    assert {one.trend for one in shown[10:]} <= {Trend.CAUGHT_UP, Trend.STEADY}
    assert all(one.consumed_per_s == pytest.approx(RATE, rel=0.25) for one in shown[10:])


def test_old_timestamps_do_not_make_a_consumer_that_keeps_up_lagging() -> None:
    shown = timeline(keeping_up, 60, age_ms=86_400_000)
    assert {one.verdict for one in shown[10:]} == {Verdict.OK}


def test_consumer_that_stops_committing_is_stalled_after_half_the_window() -> None:
    shown = timeline(lambda time_s: keeping_up(min(time_s, 20)), 80)
    verdicts = [one.verdict for one in shown]
    assert set(verdicts[:13]) == {Verdict.OK}
    assert {one.trend for one in shown[26:]} == {Trend.STALLED}
    assert set(verdicts[26:]) == {Verdict.STALLED}
    assert {one.consumed_per_s for one in shown[26:]} == {0.0}


def test_consumer_that_is_too_slow_grows_and_lags() -> None:
    shown = timeline(lambda time_s: 9_000 + 0.5 * RATE * time_s, 80)
    assert {(one.trend, one.verdict) for one in shown[10:]} == {(Trend.GROWING, Verdict.LAGGING)}
    assert {one.caught_up_in_s for one in shown[10:]} == {None}


def test_consumer_that_catches_up_falls_until_it_is_ok() -> None:
    shown = timeline(lambda time_s: min(2_000 + 2 * RATE * time_s, keeping_up(time_s)), 160)
    assert {one.trend for one in shown[10:45]} == {Trend.FALLING}
    assert shown[20].verdict is Verdict.LAGGING
    expected = (8_000 + 10_000 - 10_000 - RATE * 40) / RATE
    assert shown[20].caught_up_in_s == pytest.approx(expected, rel=0.3)
    assert {one.verdict for one in shown[-8:]} == {Verdict.OK}


def test_large_steady_lag_is_lagging() -> None:
    shown = timeline(lambda time_s: 2_000 + RATE * time_s, 80)
    assert {(one.trend, one.verdict) for one in shown[10:]} == {(Trend.STEADY, Verdict.LAGGING)}


def test_reset_offsets_are_rewound_once_and_start_a_new_window() -> None:
    shown = timeline(lambda time_s: keeping_up(time_s) - (5_000 if time_s >= 40 else 0), 80)
    assert [look for look, one in enumerate(shown) if one.trend is Trend.REWOUND] == [20]
    assert shown[21].trend is Trend.UNKNOWN
    assert (shown[-1].trend, shown[-1].verdict) == (Trend.STEADY, Verdict.LAGGING)


def test_partition_without_member_stays_unread() -> None:
    shown = timeline(lambda _: 9_000, 80, member=None)
    assert {one.verdict for one in shown} == {Verdict.UNREAD}


def test_first_look_has_no_trend() -> None:
    (first, *_) = timeline(keeping_up, 4)
    assert (first.trend, first.consumed_per_s) == (Trend.UNKNOWN, None)


@contextmanager
def writing(servers: str, topic: str) -> Iterator[None]:
    """A producer that writes about 100 records a second."""
    stop = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        while not stop.wait(0.05):
            for _ in range(5):
                producer.produce(topic, b"record")
            producer.poll(0)
        producer.flush(10)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def consuming(servers: str, topic: str) -> Iterator[threading.Event]:
    """A consumer with its defaults, auto-commit every 5 s; it stops polling with the event."""
    stop, close = threading.Event(), threading.Event()
    joined = threading.Event()

    def consume() -> None:
        consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "real", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([topic])
        while not stop.is_set():
            if consumer.poll(0.05) is not None:
                joined.set()
        close.wait()
        consumer.close()

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        assert joined.wait(30)
        yield stop
    finally:
        stop.set()
        close.set()
        thread.join()


@pytest.mark.timeout(120)
def test_real_consumer_with_default_commits_is_ok_until_it_stops(
    shared_broker: RunningBroker,
) -> None:
    servers = shared_broker.bootstrap_servers
    assert run_kctl("topics", "create", "watched", "-b", servers).exit_code == 0

    def watch(looks: int) -> list[tuple[str, str]]:
        words = ["groups", "watch", "real", "-n", str(looks), "-i", "1", "-w", "16", "-o", "jsonl"]
        command = [sys.executable, "-m", "kctl", *words, "-b", servers]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows = map(json.loads, done.stdout.splitlines())
        return [(row["trend"], row["verdict"]) for row in rows]

    with writing(servers, "watched"), consuming(servers, "watched") as stop:
        time.sleep(6)  # the first commit
        healthy = watch(18)
        assert {verdict for _, verdict in healthy} == {"ok"}, healthy
        assert {trend for trend, _ in healthy[13:]} <= {"steady", "caught-up"}, healthy
        stop.set()
        time.sleep(6)  # the last commit
        stopped = watch(11)
        assert stopped[-1] == ("stalled", "stalled"), stopped
