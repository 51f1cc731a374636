"""Rates from several readings: what offsets, sizes and counters say, and when they do not."""

from broker.errors import ErrorCode
from broker.model import TopicPartition
from kctl.model.cluster import Broker, Cluster
from kctl.model.log_dirs import LogDir, Replica
from kctl.model.monitoring import ClusterSnapshot
from kctl.model.reassignments import Reassignment
from kctl.model.top import BrokerCounters, Rates, Reading, TrafficCounters
from kctl.model.topics import Partition, Topic
from kctl.plans.traffic import TrafficHistory

PLACE = TopicPartition("orders", 0)


def reading(
    time_s: float,
    end: int,
    size: int,
    *,
    start: int = 0,
    counters: dict[int, BrokerCounters] | None = None,
    copied: int | None = None,
) -> Reading:
    """A topic with one partition, led by broker 1; `copied`: a reassignment to broker 2."""
    dirs = [LogDir(1, "/d", ErrorCode.NONE, None, None, (Replica(PLACE, size, 0, False),))]
    moving = {}
    if copied is not None:
        own = (Replica(PLACE, copied, 0, False),)
        dirs.append(LogDir(2, "/d", ErrorCode.NONE, None, None, own))
        moving = {PLACE: Reassignment(PLACE, (1, 2), (2,), ())}
    topic = Topic("orders", None, False, (Partition(0, 1, 0, (1,), (1,)),))
    brokers = (Broker(1, "h", 1, None), Broker(2, "h", 2, None))
    snapshot = ClusterSnapshot(
        "c", time_s, Cluster("id", 1, brokers), [topic], {PLACE: start}, {PLACE: end}, (), dirs
    )
    return Reading(snapshot, moving, counters or {})


def counted(time_s: float, messages: float, requests: float) -> dict[int, BrokerCounters]:
    traffic = TrafficCounters(messages, messages * 10, messages * 20)
    return {1: BrokerCounters(time_s, traffic, {"orders": traffic}, requests, 1.5)}


def test_first_reading_has_no_rates() -> None:
    rates = TrafficHistory().add(reading(0, 10, 1000))
    assert (rates.partitions, rates.topics) == ({}, {"orders": Rates()})


def test_offsets_and_sizes_give_rates_without_metrics() -> None:
    history = TrafficHistory()
    history.add(reading(0, 10, 1000))
    rates = history.add(reading(2, 30, 3000))
    assert rates.topics["orders"] == rates.brokers[1] == Rates(10, 1000, None)
    assert rates.brokers[2] == Rates()
    assert rates.topic_history["orders"] == [10]


def test_deleted_segments_do_not_hide_what_was_written() -> None:
    history = TrafficHistory()
    history.add(reading(0, 100, 10_000))
    rates = history.add(reading(1, 120, 4_000, start=80))  # 40 records of 100 bytes are left
    assert rates.topics["orders"] == Rates(20, 2000, None)


def test_recreated_topic_has_no_rate() -> None:
    history = TrafficHistory()
    history.add(reading(0, 100, 10_000))
    assert history.add(reading(1, 5, 500)).topics["orders"] == Rates()


def test_counters_of_brokers_are_preferred() -> None:
    history = TrafficHistory()
    history.add(reading(0, 10, 1000, counters=counted(0, 100, 7)))
    rates = history.add(reading(2, 30, 3000, counters=counted(4, 140, 15)))
    assert rates.brokers[1] == rates.topics["orders"] == Rates(10, 100, 200)
    assert rates.requests == {1: 2}


def test_counters_of_a_restarted_broker_are_not_used() -> None:
    history = TrafficHistory()
    history.add(reading(0, 10, 1000, counters=counted(0, 100, 70)))
    rates = history.add(reading(2, 30, 3000, counters=counted(2, 4, 5)))
    assert (rates.topics["orders"], rates.requests) == (Rates(10, 1000, None), {})


def test_reassignment_has_rate_and_remaining_time() -> None:
    history = TrafficHistory()
    history.add(reading(0, 10, 1000, copied=100))
    copy = history.add(reading(2, 10, 1000, copied=500)).copies[PLACE]
    assert (copy.arrived_bytes, copy.move_bytes, copy.bytes_per_s) == (500, 1000, 200)
    assert copy.seconds_left == 2.5
